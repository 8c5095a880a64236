/* Preloaded, makes the n-th call of one kind fail, or from then on each, if it is about a file below
   a folder. FAILING is "KIND N ERRNO ONWARDS FOLDER", ERRNO 0 halves what is read or written, and
   FAILING_COUNT is a file that holds how many such calls all processes made. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static char kind[16], below[PATH_MAX];
static long at, number, onwards;
static long *count;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

__attribute__((constructor)) void failing_arm(void) {
    const char *wanted = getenv("FAILING"), *path = getenv("FAILING_COUNT");
    kind[0] = 0;
    if (!wanted || !path ||
        sscanf(wanted, "%15s %ld %ld %ld %4095[^\n]", kind, &at, &number, &onwards, below) != 5) {
        kind[0] = 0;
        return;
    }
    int file = REAL(open)(path, O_RDWR);
    count = file < 0 ? MAP_FAILED
                     : mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (count == MAP_FAILED) kind[0] = 0;
    if (file >= 0) close(file);
}

static int is_below(int folder, const char *path) {
    char whole[PATH_MAX], link[64];
    size_t length = 0;
    if (!path || path[0] != '/') {
        if (folder == AT_FDCWD) {
            if (!getcwd(whole, sizeof whole)) return 0;
            length = strlen(whole);
        } else {
            snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
            ssize_t got = readlink(link, whole, sizeof whole - 1);
            if (got < 0) return 0;
            length = got;
        }
        whole[length] = 0;
    }
    if (path) snprintf(whole + length, sizeof whole - length, "%s%s", length ? "/" : "", path);
    return !strncmp(whole, below, strlen(below));
}

/* Whether this call has to fail; errno is set, unless it is to be short. */
static int fails(const char *this, int folder, const char *path) {
    if (!kind[0] || strcmp(kind, this)) return 0;
    int before = errno;
    int counted = is_below(folder, path);
    errno = before;
    if (!counted) return 0;
    long now = __atomic_add_fetch(count, 1, __ATOMIC_SEQ_CST);
    if (now != at && !(onwards && now > at)) return 0;
    if (number) errno = number;
    return 1;
}

#define OPEN(name, ...) \
    int name(__VA_ARGS__, int flags, ...) { \
        va_list rest; \
        va_start(rest, flags); \
        mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest);
OPEN(open, const char *path) return fails("open", AT_FDCWD, path) ? -1 : REAL(open)(path, flags, mode); }
OPEN(open64, const char *path) return fails("open", AT_FDCWD, path) ? -1 : REAL(open64)(path, flags, mode); }
OPEN(openat, int at_, const char *path) return fails("open", at_, path) ? -1 : REAL(openat)(at_, path, flags, mode); }
OPEN(openat64, int at_, const char *path) return fails("open", at_, path) ? -1 : REAL(openat64)(at_, path, flags, mode); }

#define MOVE(type, name, called, parameters, arguments, size) \
    type name parameters { \
        if (fails(called, file, NULL)) { \
            if (number) return -1; \
            size = size > 1 ? size / 2 : size; \
        } \
        return REAL(name) arguments; \
    }
MOVE(ssize_t, write, "write", (int file, const void *data, size_t size), (file, data, size), size)
MOVE(ssize_t, pwrite, "write", (int file, const void *data, size_t size, off_t from), (file, data, size, from), size)
MOVE(ssize_t, pwrite64, "write", (int file, const void *data, size_t size, off64_t from), (file, data, size, from), size)
MOVE(ssize_t, read, "read", (int file, void *data, size_t size), (file, data, size), size)
MOVE(ssize_t, pread, "read", (int file, void *data, size_t size, off_t from), (file, data, size, from), size)
MOVE(ssize_t, pread64, "read", (int file, void *data, size_t size, off64_t from), (file, data, size, from), size)
MOVE(ssize_t, sendfile, "write", (int file, int from, off_t *place, size_t size), (file, from, place, size), size)
MOVE(ssize_t, sendfile64, "write", (int file, int from, off64_t *place, size_t size), (file, from, place, size), size)

#define OF_FILE(name, called, parameters, arguments) \
    int name parameters { return fails(called, file, NULL) ? -1 : REAL(name) arguments; }
OF_FILE(fsync, "fsync", (int file), (file))
OF_FILE(fdatasync, "fsync", (int file), (file))
OF_FILE(ftruncate, "write", (int file, off_t size), (file, size))
OF_FILE(ftruncate64, "write", (int file, off64_t size), (file, size))

#define OF_NAME(name, called, folder, path, parameters, arguments) \
    int name parameters { return fails(called, folder, path) ? -1 : REAL(name) arguments; }
OF_NAME(rename, "rename", AT_FDCWD, from, (const char *from, const char *to), (from, to))
OF_NAME(renameat, "rename", a, from, (int a, const char *from, int b, const char *to), (a, from, b, to))
OF_NAME(renameat2, "rename", a, from, (int a, const char *from, int b, const char *to, unsigned how), (a, from, b, to, how))
OF_NAME(link, "rename", AT_FDCWD, from, (const char *from, const char *to), (from, to))
OF_NAME(linkat, "rename", a, from, (int a, const char *from, int b, const char *to, int how), (a, from, b, to, how))
OF_NAME(mkdir, "mkdir", AT_FDCWD, path, (const char *path, mode_t mode), (path, mode))
OF_NAME(mkdirat, "mkdir", a, path, (int a, const char *path, mode_t mode), (a, path, mode))
OF_NAME(unlink, "unlink", AT_FDCWD, path, (const char *path), (path))
OF_NAME(unlinkat, "unlink", a, path, (int a, const char *path, int how), (a, path, how))
OF_NAME(rmdir, "unlink", AT_FDCWD, path, (const char *path), (path))
