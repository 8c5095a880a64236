/* Check a certificate of byte-level BPE merges against a table of words. C11, no dependencies.

     cc -O2 -o check_certificate check_certificate.c
     gzip -dc list.certificate.gz | ./check_certificate words.table -

   It prints "accepted" (exit code 0), the first wrong merge (1), or why a file cannot be read (2).
   docs/reference/certificate.md describes both files. The count of a pair never rises after the
   merge that creates it, so the highest count, the level, only falls. A token is a string of
   hexadecimal digits, which compare as its bytes do. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t u64;
typedef uint32_t u32;
typedef unsigned char byte;
typedef struct { u64 weight; u32 *tokens; size_t length; } Word;
typedef struct { u32 left, right, *words; size_t number; int refused; } Pair;

/* What the certificate says: of the list, of each merge and of what is left. */
typedef struct { u64 left, right, count, sharing; } Claim;
static Claim *claims;
static u64 min_count, inherited, wanted, made;

static char **tokens, **spelled, *vetoes[99], tie_break; /* spelled by the inherited merges */
static Word *words;
static Pair *pairs;
static u64 *counts, level = UINT64_MAX; /* of each pair; the highest of those that may be merged */
static size_t token_number, word_number, spelled_number, veto_number, pair_number, *pair_at, room; /* pairs by a hash */
static size_t *tied, tied_number, next, sharing; /* pairs of the level in order, the next, how many are left */
static u32 byte_ranks[256];

static _Noreturn void end(int code, const char *form, ...) {
    va_list values;
    va_start(values, form);
    vprintf(form, values);
    putchar('\n');
    exit(code);
}

static void *checked(void *memory) {
    if (!memory) end(2, "unreadable: out of memory");
    return memory;
}

/* Memory with room for one more item: it doubles whenever the number is a power of two. */
static void *one_more(void *items, size_t number, size_t size) {
    return number & (number - 1) ? items : checked(realloc(items, (number ? 2 * number : 1) * size));
}

static void sha256(const byte *data, size_t size, char *hex) {
    static const u32 k[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
        0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
        0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
        0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
        0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
        0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
        0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
    u32 h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    byte last[128] = {0};
    size_t rest = size % 64, whole = size - rest, padded = rest < 56 ? 64 : 128;
    if (rest) memcpy(last, data + whole, rest);
    last[rest] = 0x80;
    for (int i = 0; i < 8; i++) last[padded - 1 - i] = (byte)((u64)size * 8 >> 8 * i);
    for (size_t block = 0; block < whole + padded; block += 64) {
        const byte *from = block < whole ? data + block : last + (block - whole);
        u32 w[64], v[8];
        for (int i = 0; i < 16; i++)
            w[i] = (u32)from[4 * i] << 24 | from[4 * i + 1] << 16 | from[4 * i + 2] << 8 | from[4 * i + 3];
#define ROTATED(x, n) ((x) >> (n) | (x) << (32 - (n)))
        for (int i = 16; i < 64; i++) {
            u32 a = w[i - 15], b = w[i - 2];
            w[i] = w[i - 16] + w[i - 7] + (ROTATED(a, 7) ^ ROTATED(a, 18) ^ a >> 3) + (ROTATED(b, 17) ^ ROTATED(b, 19) ^ b >> 10);
        }
        memcpy(v, h, sizeof v);
        for (int i = 0; i < 64; i++) {
            u32 a = v[0], e = v[4];
            u32 one = v[7] + (ROTATED(e, 6) ^ ROTATED(e, 11) ^ ROTATED(e, 25)) + ((e & v[5]) ^ (~e & v[6])) + k[i] + w[i];
            u32 two = (ROTATED(a, 2) ^ ROTATED(a, 13) ^ ROTATED(a, 22)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
            memmove(v + 1, v, 7 * sizeof *v);
            v[0] = one + two;
            v[4] += one;
        }
        for (int i = 0; i < 8; i++) h[i] += v[i];
    }
    for (int i = 0; i < 8; i++) sprintf(hex + 8 * i, "%08x", h[i]);
}

/* Whether bytes are whole characters of UTF-8, or the beginning of one. */
static int is_whole(const byte *bytes, size_t number) {
    for (size_t i = 0, size; i < number; i += size) {
        unsigned lead = bytes[i];
        size = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
        if (!size) return 0;
        for (size_t k = 1; k < size; k++) {
            if (i + k == number) return i == 0;
            unsigned low = k > 1 ? 0x80 : lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
            unsigned high = k > 1 ? 0xBF : lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
            if (bytes[i + k] < low || bytes[i + k] > high) return 0;
        }
    }
    return 1;
}

static u64 whole_number(const char *digits) {
    u64 value = 0;
    if (!*digits || digits[strspn(digits, "0123456789")]) end(2, "unreadable: %s is not a number", digits);
    for (; *digits; digits++) {
        if (value > (INT64_MAX - (u64)(*digits - '0')) / 10) end(2, "unreadable: a number is above 2**63 - 1");
        value = 10 * value + (u64)(*digits - '0');
    }
    return value;
}

/* Whether a list such as 61.6263 has this token. */
static int lists(const char *list, const char *token) {
    for (size_t size; *list; list += size + (list[size] == '.')) {
        size = strcspn(list, ".");
        if (size == strlen(token) && !strncmp(list, token, size)) return 1;
    }
    return 0;
}

static int is_vetoed(const char *left, const char *right, const char *both) {
    size_t size = strlen(both) / 2, parts = 0, characters = 0, colons = 0;
    byte *bytes = checked(malloc(size)), before = ' ';
    for (size_t i = 0; i < size; before = bytes[i++]) {
        sscanf(both + 2 * i, "%2hhx", bytes + i);
        parts += bytes[i] != ' ' && before == ' ';
        colons += bytes[i] == ' ' && before == ':';
        characters += (bytes[i] & 0xC0) != 0x80;
    }
    int refused = 0;
    for (size_t i = 0; i < veto_number; i++) {
        const char *name = vetoes[i], *value = strchr(name, ':') ? strchr(name, ':') + 1 : "";
        if (!strcmp(name, "superbpe")) refused |= colons || parts > 4;
        else if (!strcmp(name, "whole_characters")) refused |= !is_whole(bytes, size);
        else if (!strncmp(name, "bytes:", 6)) refused |= size > whole_number(value);
        else if (!strncmp(name, "characters:", 11)) refused |= characters > whole_number(value);
        else if (!strncmp(name, "protected:", 10)) refused |= lists(value, left) || lists(value, right);
        else end(2, "unreadable: this checker knows no veto %s", name);
    }
    free(bytes);
    return refused;
}

static char *joined(u32 left, u32 right) {
    char *both = checked(malloc(strlen(tokens[left]) + strlen(tokens[right]) + 1));
    return strcat(strcpy(both, tokens[left]), tokens[right]);
}

static int by_spelling(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static int is_refused(u32 left, u32 right) {
    if (!veto_number && !spelled_number) return 0;
    char *both = joined(left, right);
    int refused = is_vetoed(tokens[left], tokens[right], both) ||
                  (spelled && bsearch(&both, spelled, spelled_number, sizeof *spelled, by_spelling));
    free(both);
    return refused;
}

/* Below 0 if of equal counts the pairs of token a go before those of b. */
static int order(u32 a, u32 b) {
    if (a == b || tie_break == 'a') return 0;
    if (tie_break == 'g') return strcmp(tokens[b], tokens[a]);
    if (tie_break == 's') return strcmp(tokens[a], tokens[b]);
    a = a < 256 ? byte_ranks[a] : a;
    b = b < 256 ? byte_ranks[b] : b;
    return a < b ? -1 : 1;
}

static int by_order(const void *a, const void *b) {
    const Pair *one = pairs + *(const size_t *)a, *other = pairs + *(const size_t *)b;
    int lefts = order(one->left, other->left);
    return lefts ? lefts : order(one->right, other->right);
}

static size_t *slot_of(u32 left, u32 right) {
    size_t slot = (((u64)left << 32 | right) * 0x9E3779B97F4A7C15u >> 20) % room;
    while (pair_at[slot] && (pairs[pair_at[slot] - 1].left != left || pairs[pair_at[slot] - 1].right != right))
        slot = (slot + 1) % room;
    return pair_at + slot;
}

/* The index of a pair; a new one has count 0. */
static size_t pair_of(u32 left, u32 right) {
    if (2 * pair_number >= room) {
        room = room ? 2 * room : 1 << 10;
        free(pair_at);
        pair_at = checked(calloc(room, sizeof *pair_at));
        for (size_t i = 0; i < pair_number; i++) *slot_of(pairs[i].left, pairs[i].right) = i + 1;
    }
    size_t *slot = slot_of(left, right);
    if (!*slot) {
        pairs = one_more(pairs, pair_number, sizeof *pairs);
        counts = one_more(counts, pair_number, sizeof *counts);
        pairs[pair_number] = (Pair){left, right, NULL, 0, is_refused(left, right)};
        counts[pair_number] = 0;
        *slot = ++pair_number;
    }
    return *slot - 1;
}

/* Add the weight of a word to the counts of its pairs, or take it away. Pairs with a token from
   `new` on are then found in the word. */
static void count(u32 index, int sign, u32 new) {
    Word word = words[index];
    for (size_t i = 1; i < word.length; i++) {
        size_t at = pair_of(word.tokens[i - 1], word.tokens[i]);
        Pair *pair = pairs + at;
        sharing -= !pair->refused && counts[at] == level;
        counts[at] += sign < 0 ? -word.weight : word.weight;
        sharing += !pair->refused && counts[at] == level;
        if (sign < 0 || (pair->left < new && pair->right < new)) continue;
        if (pair->number && pair->words[pair->number - 1] == index) continue;
        pair->words = one_more(pair->words, pair->number, sizeof *pair->words);
        pair->words[pair->number++] = index;
    }
}

/* The most frequent pair that the tie-break takes. `level` is then its count, 0 if none is left, and
   `sharing` how many pairs have it. */
static size_t best(void) {
    while (next < tied_number && counts[tied[next]] != level) next++;
    if (next < tied_number) return tied[next];
    level = next = tied_number = 0;
    for (size_t i = 0; i < pair_number; i++)
        if (counts[i] > level && !pairs[i].refused) level = counts[i];
    for (size_t i = 0; level && i < pair_number; i++) {
        if (counts[i] != level || pairs[i].refused) continue;
        tied = one_more(tied, tied_number, sizeof *tied);
        tied[tied_number++] = i;
    }
    sharing = tied_number;
    if (tied_number) qsort(tied, tied_number, sizeof *tied, by_order);
    return tied_number ? tied[0] : SIZE_MAX;
}

static void merge(u32 left, u32 right) {
    size_t merged = pair_of(left, right), number = pairs[merged].number, known = pair_number;
    u32 new = (u32)token_number, *places = pairs[merged].words;
    tokens = one_more(tokens, token_number, sizeof *tokens);
    tokens[token_number++] = joined(left, right);
    for (size_t place = 0; place < number; place++) {
        Word *word = words + places[place];
        size_t length = 0;
        count(places[place], -1, new);
        for (size_t i = 0; i < word->length; length++) {
            int here = i + 1 < word->length && word->tokens[i] == left && word->tokens[i + 1] == right;
            word->tokens[length] = here ? new : word->tokens[i];
            i += here ? 2 : 1;
        }
        word->length = length;
        count(places[place], 1, new);
    }
    for (; known < pair_number; known++) { /* a new pair of the level is put where it belongs */
        if (counts[known] != level || pairs[known].refused) continue;
        tied = one_more(tied, tied_number, sizeof *tied);
        size_t at = tied_number++;
        for (; at > next && by_order(&known, tied + at - 1) < 0; at--) tied[at] = tied[at - 1];
        tied[at] = known;
    }
}

/* Reading: a file as a string, and what is at a cursor in it. */

static char *file(const char *path, size_t *size) {
    FILE *stream = strcmp(path, "-") ? fopen(path, "rb") : stdin;
    if (!stream) end(2, "unreadable: cannot open %s", path);
    char *content = checked(malloc(1));
    *size = 0;
    for (int letter; (letter = getc(stream)) != EOF; ++*size) {
        content = one_more(content, *size + 1, 1);
        content[*size] = (char)letter;
    }
    content[*size] = 0;
    return content;
}

/* What follows a name, up to and without a letter. */
static char *text(char **cursor, const char *name, char then) {
    char *found = *cursor + strlen(name), *stop = strncmp(*cursor, name, strlen(name)) ? NULL : strchr(found, then);
    if (!stop) end(2, "unreadable: this is not a table and a certificate of format 1");
    *stop = 0;
    *cursor = stop + 1;
    return found;
}

static u64 number(char **cursor, const char *name, char then) {
    return whole_number(text(cursor, name, then));
}

static void read_table(char *cursor, const char *stop) {
    u64 total = 0;
    for (; cursor < stop; word_number++) {
        u64 weight = number(&cursor, "", ' ');
        char *hex = text(&cursor, "", '\n');
        size_t length = strlen(hex) / 2;
        if (!weight || !length || hex[strspn(hex, "0123456789abcdef")] || strlen(hex) % 2)
            end(2, "unreadable: a line of the table is not a count and a word in hexadecimal digits");
        if (length > 1 && weight > (INT64_MAX - total) / (length - 1))
            end(2, "unreadable: the counts of the table add up to more than 2**63 - 1");
        total += weight * (length - 1);
        words = one_more(words, word_number, sizeof *words);
        words[word_number] = (Word){weight, checked(malloc(length * sizeof(u32))), length};
        for (size_t i = 0; i < length; i++) sscanf(hex + 2 * i, "%2x", words[word_number].tokens + i);
    }
    for (u32 index = 0; index < word_number; index++) count(index, 1, 0);
}

static void read_certificate(char *cursor, const char *stop, const char *table_hex, size_t table_size) {
    static const char *rules[] = {"greatest_bytes", "smallest_bytes", "huggingface", "raw_bytes", "any"};
    if (number(&cursor, "bpe-certificate ", '\n') != 1) end(2, "unreadable: the certificate is not of format 1");
    if (number(&cursor, "table ", ' ') != table_size || strcmp(text(&cursor, "", '\n'), table_hex))
        end(2, "unreadable: the table is not the one that the certificate names");
    const char *rule = text(&cursor, "tie_break ", '\n');
    for (size_t i = 0; i < 5; i++)
        if (!strcmp(rule, rules[i])) tie_break = *rule;
    if (!tie_break) end(2, "unreadable: this checker knows no tie_break %s", rule);
    min_count = number(&cursor, "min_count ", '\n');
    char *veto = strtok(text(&cursor, "veto ", '\n'), ",");
    for (; veto && strcmp(veto, "none") && veto_number < 99; veto = strtok(NULL, ",")) vetoes[veto_number++] = veto;
    is_vetoed("00", "00", "0000"); /* knows all of them, or ends */
    inherited = number(&cursor, "inherited ", '\n');
    wanted = number(&cursor, "wanted ", '\n');
    made = number(&cursor, "merges ", '\n');
    for (u64 i = 0; i <= made; i++) { /* the last one is what is left */
        claims = one_more(claims, i, sizeof *claims);
        claims[i] = (Claim){0};
        if (i < made) claims[i].left = number(&cursor, "", ' '), claims[i].right = number(&cursor, "", ' ');
        claims[i].count = number(&cursor, i < made ? "" : "left ", ' ');
        claims[i].sharing = number(&cursor, "", '\n');
    }
    if (inherited > made || !min_count || cursor != stop)
        end(2, "unreadable: the certificate has other merges than it says, or min_count 0");
}

/* Checking. */

static void check_choice(u64 n, size_t pair) {
    size_t first = best();
    if (pairs[pair].refused) end(1, "wrong: merge %" PRIu64 " is vetoed, or spells an inherited token again", n);
    if (!counts[pair] || counts[pair] < level || counts[pair] < min_count)
        end(1, "wrong: merge %" PRIu64 " has count %" PRIu64 ", the highest is %" PRIu64, n, counts[pair], level);
    if (first != pair && tie_break != 'a')
        end(1, "wrong: merge %" PRIu64 " breaks a tie otherwise: %s %s goes first", n, tokens[pairs[first].left],
            tokens[pairs[first].right]);
}

/* After the inherited merges more pairs are refused. */
static void forbid_spellings(void) {
    spelled_number = inherited;
    spelled = checked(malloc(inherited * sizeof *spelled));
    memcpy(spelled, tokens + 256, inherited * sizeof *spelled);
    qsort(spelled, spelled_number, sizeof *spelled, by_spelling);
    for (size_t i = 0; i < pair_number; i++) pairs[i].refused = is_refused(pairs[i].left, pairs[i].right);
}

static void check_merge(u64 n, Claim claim) {
    if (n > wanted) end(1, "wrong: merge %" PRIu64 " is one too many", n);
    if (claim.left >= token_number || claim.right >= token_number)
        end(1, "wrong: merge %" PRIu64 " is of a token that no merge before it makes", n);
    u32 left = (u32)claim.left, right = (u32)claim.right;
    size_t pair = pair_of(left, right);
    if (n > inherited) check_choice(n, pair);
    u64 true_sharing = n > inherited ? sharing : 0;
    if (claim.count != counts[pair] || claim.sharing != true_sharing)
        end(1, "wrong: merge %" PRIu64 " has count %" PRIu64 ", shared by %" PRIu64, n, counts[pair], true_sharing);
    merge(left, right);
    for (size_t i = 256; n <= inherited && i + 1 < token_number; i++)
        if (!strcmp(tokens[i], tokens[token_number - 1]))
            end(1, "wrong: merge %" PRIu64 " spells an inherited token again", n);
    if (n == inherited) forbid_spellings();
}

int main(int argc, char **argv) {
    if (argc != 3) end(2, "usage: check_certificate TABLE CERTIFICATE");
    const size_t tail = 72; /* sha256, a blank, 64 digits, a line end */
    size_t table_size, size;
    char *table = file(argv[1], &table_size), *certificate = file(argv[2], &size), hex[65];
    if (size > tail) sha256((byte *)certificate, size - tail, hex);
    if (size <= tail || memcmp(certificate + size - tail, "sha256 ", 7) || memcmp(certificate + size - 65, hex, 64))
        end(2, "unreadable: the certificate is damaged, or compressed: gzip -dc FILE | check_certificate TABLE -");
    sha256((byte *)table, table_size, hex);
    read_certificate(certificate, certificate + size - tail, hex, table_size);
    for (u32 b = 0, shown = 0, hidden = 188; b < 256; b++) {
        tokens = one_more(tokens, b, sizeof *tokens);
        tokens[b] = checked(malloc(9));
        sprintf(tokens[token_number++], "%02x", b);
        byte_ranks[b] = b; /* in GPT-2's order those that it shows as other characters come last */
        if (tie_break == 'h') byte_ranks[b] = b < 33 || (b > 126 && b < 161) || b == 173 ? hidden++ : shown++;
    }
    read_table(table, table + table_size);

    for (u64 n = 1; n <= made; n++) check_merge(n, claims[n - 1]);
    best();
    if (claims[made].count != level || claims[made].sharing != sharing)
        end(1, "wrong: merge %" PRIu64 ": count %" PRIu64 " is left, shared by %zu", made + 1, level, sharing);
    if (made < wanted && level >= min_count)
        end(1, "wrong: merge %" PRIu64 " is missing: a pair with count %" PRIu64 " is left", made + 1, level);
    end(0, "accepted");
}
