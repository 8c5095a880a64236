/* Check a certificate of byte-level BPE merges against a table of words. C11, no dependencies.

     cc -O2 -o check_certificate check_certificate.c
     gzip -dc list.certificate.gz | ./check_certificate words.table -

   It prints "accepted" (exit code 0), the first wrong merge (1), or what cannot be read (2).
   docs/reference/certificate.md describes both files. A token is a string of hexadecimal digits,
   which compare as its bytes do. The count of a pair never rises after the merge that creates it,
   so the highest count, the level, only falls: the pairs of a level are found once, and sorted. */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long u64;
typedef uint32_t u32;
typedef unsigned char byte;
typedef struct { const char *name; char *content, *next, *stop, *line; size_t number; } Source; /* a file, line by line */
typedef struct { u64 weight; u32 *tokens; size_t length; } Word;
typedef struct { u32 left, right, *words; size_t number; int refused; } Pair;

static const char HEXADECIMAL[] = "0123456789abcdef";
static char **tokens, **spelled, **vetoes, tie_break; /* spelled by the inherited merges */
static Word *words;
static Pair *pairs;
static u64 min_count, *counts, level = UINT64_MAX; /* of each pair; the highest of those that may be merged */
static size_t token_number, word_number, pair_number, spelled_number, veto_number, *pair_at, room; /* pairs by a hash */
static size_t *tied, tied_number, next, sharing; /* pairs of the level in order, the next, how many are left */

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

static u32 rotated(u32 x, int n) { return x >> n | x << (32 - n); }

static void sha256_block(u32 *h, const byte *from) {
    static const u32 k[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
        0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
        0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
        0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
        0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
        0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
        0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
    u32 w[64], v[8];
    memcpy(v, h, sizeof v);
    for (int i = 0; i < 64; i++) {
        if (i < 16) {
            w[i] = (u32)from[4 * i] << 24 | from[4 * i + 1] << 16 | from[4 * i + 2] << 8 | from[4 * i + 3];
        } else {
            u32 a = w[i - 15], b = w[i - 2];
            w[i] = w[i - 16] + w[i - 7] + (rotated(a, 7) ^ rotated(a, 18) ^ a >> 3) + (rotated(b, 17) ^ rotated(b, 19) ^ b >> 10);
        }
        u32 a = v[0], e = v[4];
        u32 one = v[7] + (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) + ((e & v[5]) ^ (~e & v[6])) + k[i] + w[i];
        u32 two = (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof *v);
        v[0] = one + two;
        v[4] += one;
    }
    for (int i = 0; i < 8; i++) h[i] += v[i];
}

static void sha256(const char *data, size_t size, char *hex) {
    u32 h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    byte last[128] = {0};
    size_t rest = size % 64, padded = rest < 56 ? 64 : 128;
    memcpy(last, data + size - rest, rest);
    last[rest] = 0x80;
    for (int i = 0; i < 8; i++) last[padded - 1 - i] = (byte)((u64)size * 8 >> 8 * i);
    for (size_t i = 0; i + 64 <= size; i += 64) sha256_block(h, (const byte *)data + i);
    for (size_t i = 0; i < padded; i += 64) sha256_block(h, last + i);
    for (int i = 0; i < 8; i++) sprintf(hex + 8 * i, "%08x", h[i]);
}

static Source source(const char *name, const char *path) {
    FILE *stream = strcmp(path, "-") ? fopen(path, "rb") : stdin;
    char *content = checked(malloc(1));
    size_t size = 0;
    for (int letter; stream && (letter = getc(stream)) != EOF; size++) {
        content = one_more(content, size, 1);
        content[size] = (char)letter;
    }
    if (!stream || ferror(stream)) end(2, "unreadable: cannot read %s", path);
    return (Source){name, content, content, content + size, NULL, 0};
}

static _Noreturn void bad_line(const Source *source) {
    end(2, "unreadable: line %zu of the %s", source->number, source->name);
}

/* Go to the next line, and in it behind what it has to begin with. */
static void next_line(Source *source, const char *beginning) {
    char *stop = memchr(source->next, '\n', (size_t)(source->stop - source->next));
    source->number++;
    source->line = source->next;
    if (!stop || memchr(source->line, 0, (size_t)(stop - source->line))) bad_line(source);
    *stop = 0;
    source->next = stop + 1;
    if (strncmp(source->line, beginning, strlen(beginning))) bad_line(source);
    source->line += strlen(beginning);
}

/* What comes next in the line: some of these characters, and then another. */
static char *field(Source *source, const char *characters, char then) {
    char *found = source->line, *stop = found + strspn(found, characters);
    if (stop == found || *stop != then) bad_line(source);
    *stop = 0;
    source->line = stop + 1;
    return found;
}

static u64 number(Source *source, char then) {
    char *digits = field(source, "0123456789", then);
    u64 value = strtoull(digits, NULL, 10);
    if (strlen(digits) > 19 || value > INT64_MAX) bad_line(source);
    return value;
}

static u64 number_after(Source *source, const char *beginning) {
    next_line(source, beginning);
    return number(source, 0);
}

static void read_table(Source *table) {
    u64 total = 0;
    while (table->next != table->stop) {
        next_line(table, "");
        u64 weight = number(table, ' ');
        const char *hex = field(table, HEXADECIMAL, 0);
        size_t length = strlen(hex) / 2;
        if (!weight || strlen(hex) % 2 || (length > 1 && weight > (INT64_MAX - total) / (length - 1))) bad_line(table);
        total += weight * (length - 1);
        words = one_more(words, word_number, sizeof *words);
        words[word_number] = (Word){weight, checked(malloc(length * sizeof(u32))), length};
        for (size_t i = 0; i < length; i++) sscanf(hex + 2 * i, "%2x", words[word_number].tokens + i);
        word_number++;
    }
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

static int is_known(const char *name) {
    static const char *forms[] = {"none%n", "superbpe%n", "whole_characters%n", "bytes:%*18[0-9]%n",
                                  "characters:%*18[0-9]%n", "protected:%*[0-9a-f.]%n"};
    int stop = 0;
    for (size_t i = 0; i < 6 && !stop; i++) sscanf(name, forms[i], &stop);
    return stop && !name[stop];
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
        const char kind = *vetoes[i], *value = strchr(vetoes[i], ':') + 1;
        if (kind == 's') refused |= colons || parts > 4;
        if (kind == 'w') refused |= !is_whole(bytes, size);
        if (kind == 'b') refused |= size > strtoull(value, NULL, 10);
        if (kind == 'c') refused |= characters > strtoull(value, NULL, 10);
        if (kind == 'p') refused |= lists(value, left) || lists(value, right);
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
    char *both = joined(left, right);
    int refused = is_vetoed(tokens[left], tokens[right], both) ||
                  (spelled && bsearch(&both, spelled, spelled_number, sizeof *spelled, by_spelling));
    free(both);
    return refused;
}

/* Where a token is among all by number; in GPT-2's order the bytes that it shows as other
   characters come behind the others. */
static u32 rank(u32 token) {
    int is_shown = (token > 32 && token < 127) || (token > 160 && token < 256 && token != 173);
    return tie_break == 'h' && !is_shown ? token + 256 : token;
}

/* Below 0 if of equal counts the pairs of token a go before those of b. */
static int order(u32 a, u32 b) {
    if (a == b || tie_break == 'a') return 0;
    if (tie_break == 'g') return strcmp(tokens[b], tokens[a]);
    if (tie_break == 's') return strcmp(tokens[a], tokens[b]);
    return rank(a) < rank(b) ? -1 : 1;
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
        pairs[pair_number] = (Pair){left, right, NULL, 0, (veto_number || spelled) && is_refused(left, right)};
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

static void check_choice(u64 n, size_t pair) {
    size_t first = best();
    if (pairs[pair].refused) end(1, "wrong: merge %llu is vetoed, or spells an inherited token again", n);
    if (!counts[pair] || counts[pair] < level || counts[pair] < min_count)
        end(1, "wrong: merge %llu has count %llu, the highest is %llu", n, counts[pair], level);
    if (first != pair && tie_break != 'a')
        end(1, "wrong: merge %llu breaks a tie otherwise: %s %s goes first", n, tokens[pairs[first].left],
            tokens[pairs[first].right]);
}

static void check_inherited(u64 n, size_t pair) {
    char *both = joined(pairs[pair].left, pairs[pair].right);
    for (size_t i = 256; i < token_number; i++)
        if (!strcmp(tokens[i], both)) end(1, "wrong: merge %llu spells an inherited token again", n);
    free(both);
}

/* After the inherited merges more pairs are refused. */
static void forbid_spellings(size_t inherited) {
    spelled_number = inherited;
    spelled = checked(malloc(inherited * sizeof *spelled));
    memcpy(spelled, tokens + 256, inherited * sizeof *spelled);
    qsort(spelled, spelled_number, sizeof *spelled, by_spelling);
    for (size_t i = 0; i < pair_number; i++) pairs[i].refused = is_refused(pairs[i].left, pairs[i].right);
}

static void check_merges(Source *certificate, u64 inherited, u64 wanted, u64 made) {
    for (u64 n = 1; n <= made; n++) {
        next_line(certificate, "");
        u64 left = number(certificate, ' '), right = number(certificate, ' ');
        u64 claimed = number(certificate, ' '), claimed_sharing = number(certificate, 0);
        if (n > wanted) end(1, "wrong: merge %llu is one too many", n);
        if (left >= token_number || right >= token_number)
            end(1, "wrong: merge %llu is of a token that no merge before it makes", n);

        size_t pair = pair_of((u32)left, (u32)right);
        if (n <= inherited) check_inherited(n, pair);
        else check_choice(n, pair);
        u64 true_sharing = n <= inherited ? 0 : sharing;
        if (claimed != counts[pair] || claimed_sharing != true_sharing)
            end(1, "wrong: merge %llu has count %llu, shared by %llu", n, counts[pair], true_sharing);
        merge((u32)left, (u32)right);
        if (n == inherited) forbid_spellings(inherited);
    }

    best();
    next_line(certificate, "left ");
    u64 claimed = number(certificate, ' ');
    if (number(certificate, 0) != sharing || claimed != level)
        end(1, "wrong: merge %llu: count %llu is left, shared by %zu", made + 1, level, sharing);
    if (made < wanted && level >= min_count)
        end(1, "wrong: merge %llu is missing: a pair with count %llu is left", made + 1, level);
    certificate->number++;
    if (certificate->next != certificate->stop) bad_line(certificate);
}

static void check(Source *table, Source *certificate) {
    static const char *rules[] = {"greatest_bytes", "smallest_bytes", "huggingface", "raw_bytes", "any"};
    char table_digest[65];
    size_t table_size = (size_t)(table->stop - table->content);
    sha256(table->content, table_size, table_digest);

    if (number_after(certificate, "bpe-certificate ") != 1) bad_line(certificate);
    next_line(certificate, "table ");
    u64 size = number(certificate, ' ');
    const char *digest = field(certificate, HEXADECIMAL, 0);
    if (size != table_size || strcmp(digest, table_digest))
        end(2, "unreadable: the table is not the one that the certificate names");
    next_line(certificate, "tie_break ");
    for (size_t i = 0; i < 5; i++)
        if (!strcmp(certificate->line, rules[i])) tie_break = *rules[i];
    if (!tie_break) bad_line(certificate);
    if (!(min_count = number_after(certificate, "min_count "))) bad_line(certificate);
    next_line(certificate, "veto ");
    for (char *name = certificate->line, *rest; name; name = rest) {
        if ((rest = strchr(name, ','))) *rest++ = 0;
        if (!is_known(name)) bad_line(certificate);
        vetoes = one_more(vetoes, veto_number, sizeof *vetoes);
        vetoes[veto_number++] = name;
    }
    u64 inherited = number_after(certificate, "inherited "), wanted = number_after(certificate, "wanted ");
    u64 made = number_after(certificate, "merges ");
    if (made < inherited || made > 1000000) bad_line(certificate);

    for (u32 b = 0; b < 256; b++) {
        tokens = one_more(tokens, b, sizeof *tokens);
        tokens[token_number++] = checked(malloc(3));
        sprintf(tokens[b], "%02x", b);
    }
    read_table(table);
    for (u32 index = 0; index < word_number; index++) count(index, 1, 0);
    check_merges(certificate, inherited, wanted, made);
}

int main(int argc, char **argv) {
    if (argc != 3) end(2, "usage: check_certificate TABLE CERTIFICATE");
    const size_t tail = 72; /* sha256, a blank, 64 digits, a line end */
    Source table = source("table", argv[1]), certificate = source("certificate", argv[2]);
    size_t size = (size_t)(certificate.stop - certificate.content);
    char digest[65], last[80] = "";
    if (size >= tail) {
        certificate.stop -= tail;
        sha256(certificate.content, size - tail, digest);
        sprintf(last, "sha256 %s\n", digest);
    }
    if (memcmp(certificate.stop, last, strlen(last)) || !*last)
        end(2, "unreadable: the certificate is damaged, or compressed");
    check(&table, &certificate);
    end(0, "accepted");
}
