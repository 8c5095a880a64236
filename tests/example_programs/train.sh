#!/bin/sh
# ./train.sh WORDS MERGES NUM_MERGES: the definition. Tokens stay hexadecimal digits, which sort like their bytes. The
# blank between two tokens sorts before every digit, so a token comes before a longer one that starts with it. An awk
# that stores numbers as 64-bit floats counts exactly up to 2^53.
LC_ALL=C exec awk -v output="$2" -v left="$3" '
function merge(text, pair, token,    tokens, n, i, out) {
    n = split(text, tokens, " ")
    for (i = 1; i <= n; i++)
        if (i < n && tokens[i] " " tokens[i + 1] == pair) { out = out " " token; i++ }
        else out = out " " tokens[i]
    return out
}
BEGIN { printf "" > output }
{ weight[NR] = $1; gsub(/../, "& ", $2); word[NR] = $2 }
END {
    while (left-- > 0) {
        split("", count)
        for (w = 1; w <= NR; w++) {
            n = split(word[w], tokens, " ")
            for (i = 1; i < n; i++) count[tokens[i] " " tokens[i + 1]] += weight[w]
        }
        best = ""
        for (pair in count)
            if (best == "" || count[pair] > count[best] || (count[pair] == count[best] && pair > best)) best = pair
        if (best == "") break
        print best > output
        token = best; sub(/ /, "", token)
        for (w = 1; w <= NR; w++) word[w] = merge(word[w], best, token)
    }
}' "$1"
