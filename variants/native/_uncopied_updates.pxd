cdef dict merge_pair(state, pair, new_token, meter, set standing)
