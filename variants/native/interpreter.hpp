// Into Python from C++, while the interpreter may be ending.
#pragma once

#include <Python.h>

#include <cxxabi.h>
#include <unistd.h>
#include <utility>

namespace native {

// To be called without the GIL before it is taken from C++. When the interpreter ends, a thread that asks for the GIL is
// unwound, which C++ takes for an exception and aborts at: a daemon thread waits here for the end of the process instead.
inline void wait_if_the_interpreter_ends() {
#if PY_VERSION_HEX >= 0x030D0000
    while (Py_IsFinalizing()) pause();
#else
    while (_Py_IsFinalizing()) pause();
#endif
}

// Calls a function that takes the GIL. The end may also come while it waits for the GIL: then its unwinding ends here, before
// any of C++'s handlers takes it for an exception.
template <class Answer, class... Parameters, class... Arguments>
Answer in_python(Answer (*function)(Parameters...), Arguments&&... arguments) {
    wait_if_the_interpreter_ends();
#ifdef __GLIBCXX__
    try {
        return function(std::forward<Arguments>(arguments)...);
    } catch (abi::__forced_unwind&) {
        for (;;) pause();
    }
#else
    return function(std::forward<Arguments>(arguments)...);
#endif
}

}  // namespace native
