/* Runs a process tree under ptrace: counts, fails, shortens or records its system calls on the
 * files beneath one directory. x86-64 only.
 *
 * ptrace sees all system calls of the process: of libraries, Python, HDF5, and inlined ones.
 * `strace -e inject` fails calls in the same way, but counts them for each thread, cannot select a
 * directory, and cannot make a transfer short: an injected result reports bytes as written that
 * were not. Here the kernel itself transfers fewer bytes. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/ptrace.h>

enum family {
  WRITE,
  READ,
  FSYNC,
  OPEN,
  CLOSE,
  MMAP,
  TRUNCATE,
  MKDIR,
  UNLINK,
  RENAME,
  LINK,
  COPY,
  FAMILIES
};
/* The kinds of the first arguments: descriptor, path, directory and path, two of these. `OUT`: the
 * descriptor is argument 2; `MAPPED`: argument 4; `SYMLINK`: a text, then a path. */
enum shape { FD, OUT, MAPPED, PATH, AT, PATHS, ATS, SYMLINK, SYMLINK_AT };

static const struct kind {
  long number;
  const char* name;
  enum family family;
  enum shape shape;
} kinds[] = {
    {SYS_write, "write", WRITE, FD},
    {SYS_pwrite64, "pwrite", WRITE, FD},
    {SYS_writev, "writev", WRITE, FD},
    {SYS_pwritev, "pwritev", WRITE, FD},
    {SYS_pwritev2, "pwritev", WRITE, FD},
    {SYS_read, "read", READ, FD},
    {SYS_pread64, "pread", READ, FD},
    {SYS_readv, "readv", READ, FD},
    {SYS_preadv, "preadv", READ, FD},
    {SYS_preadv2, "preadv", READ, FD},
    {SYS_fsync, "fsync", FSYNC, FD},
    {SYS_fdatasync, "fsync", FSYNC, FD},
    {SYS_open, "open", OPEN, PATH},
    {SYS_creat, "open", OPEN, PATH},
    {SYS_openat, "open", OPEN, AT},
    {SYS_close, "close", CLOSE, FD},
    {SYS_mmap, "mmap", MMAP, MAPPED},
    {SYS_ftruncate, "truncate", TRUNCATE, FD},
    {SYS_truncate, "truncate", TRUNCATE, PATH},
    {SYS_fallocate, "fallocate", TRUNCATE, FD},
    {SYS_mkdir, "mkdir", MKDIR, PATH},
    {SYS_mkdirat, "mkdir", MKDIR, AT},
    {SYS_unlink, "unlink", UNLINK, PATH},
    {SYS_unlinkat, "unlink", UNLINK, AT},
    {SYS_rmdir, "unlink", UNLINK, PATH},
    {SYS_rename, "rename", RENAME, PATHS},
    {SYS_renameat, "rename", RENAME, ATS},
    {SYS_renameat2, "rename", RENAME, ATS},
    {SYS_link, "link", LINK, PATHS},
    {SYS_linkat, "link", LINK, ATS},
    {SYS_symlink, "symlink", LINK, SYMLINK},
    {SYS_symlinkat, "symlink", LINK, SYMLINK_AT},
    {SYS_copy_file_range, "copy", COPY, OUT},
    {SYS_sendfile, "copy", COPY, FD},
};

/* tests/faults/tracing.py has the same structures. */
enum action { NOTHING, FAIL, SHORTEN, KILL };
struct plan {
  const char* root; /* without a slash at its end */
  int32_t action;   /* enum action */
  int32_t family;   /* enum family of the faulted calls */
  int32_t index;    /* number of the first faulted call in its family, from 1 on */
  int32_t onwards;  /* fault all later calls, too */
  int32_t error;    /* errno of FAIL */
  int32_t seconds;  /* limit of the whole run */
  int32_t record;   /* descriptor for records, or -1 */
};
struct outcome {
  int32_t status; /* wait status of the child */
  int32_t late;   /* the time limit was exceeded */
  int32_t injected;
  int32_t counts[FAMILIES];
};
/* A successful call; path, second path and data follow it. */
struct record {
  char name[16];
  int64_t result;
  uint64_t arguments[6];
  uint64_t offset;      /* of a transfer */
  uint64_t before, ino; /* inodes: of the (last) path before the call; of the file */
  uint32_t path, other;
  uint64_t data;
};

struct thread {
  pid_t id;
  const struct kind* kind; /* of the thread's current call, if it is traced */
  uint64_t arguments[6];
  int failing, restored; /* at the exit: replace the result; restore the length */
  uint64_t place, length;
  char path[PATH_MAX], other[PATH_MAX];
  uint64_t before, ino;
  char* data;
  uint64_t size;
};

enum { MOST_THREADS = 512 };
static struct thread threads[MOST_THREADS];
static volatile sig_atomic_t alarmed;

static void note_alarm(int number) { alarmed = number; }

static struct thread* find_thread(pid_t id, int make) {
  struct thread* unused = NULL;
  for (int i = 0; i < MOST_THREADS; ++i) {
    if (threads[i].id == id) return &threads[i];
    if (threads[i].id == 0 && !unused) unused = &threads[i];
  }
  if (!make || !unused) return NULL;
  memset(unused, 0, sizeof *unused);
  unused->id = id;
  return unused;
}

static void forget_thread(pid_t id) {
  struct thread* thread = find_thread(id, 0);
  if (!thread) return;
  free(thread->data);
  memset(thread, 0, sizeof *thread);
}

static const struct kind* find_kind(long number) {
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i)
    if (kinds[i].number == number) return &kinds[i];
  return NULL;
}

/* ---- paths and descriptors of a call */

static size_t read_memory(pid_t id, uint64_t from, void* to, size_t size) {
  struct iovec local = {to, size}, remote = {(void*)from, size};
  const ssize_t got = process_vm_readv(id, &local, 1, &remote, 1, 0);
  return got < 0 ? 0 : (size_t)got;
}

static void read_text(pid_t id, uint64_t from, char* to) {
  size_t done = 0;
  while (done < PATH_MAX - 1) {
    size_t step = 4096 - (from + done) % 4096;
    if (step > PATH_MAX - 1 - done) step = PATH_MAX - 1 - done;
    const size_t got = read_memory(id, from + done, to + done, step);
    if (memchr(to + done, 0, got)) return;
    done += got;
    if (got < step) break;
  }
  to[done] = 0;
}

static void read_link(pid_t id, const char* name, int64_t number, char* to) {
  char link[64];
  if (number < 0)
    snprintf(link, sizeof link, "/proc/%d/%s", id, name);
  else
    snprintf(link, sizeof link, "/proc/%d/%s/%d", id, name, (int)number);
  const ssize_t size = readlink(link, to, PATH_MAX - 1);
  to[size < 0 ? 0 : size] = 0;
}

static void find_path(pid_t id, int directory, uint64_t text, char* to) {
  char given[PATH_MAX], base[PATH_MAX];
  read_text(id, text, given);
  const char* own = "/proc/self/fd/";
  if (strncmp(given, own, strlen(own)) == 0) {
    read_link(id, "fd", atoi(given + strlen(own)), to);
  } else if (given[0] == '/') {
    strcpy(to, given);
  } else {
    read_link(id, directory == AT_FDCWD ? "cwd" : "fd", directory == AT_FDCWD ? -1 : directory,
              base);
    if (snprintf(to, PATH_MAX, given[0] ? "%s/%s" : "%s%s", base, given) >= PATH_MAX) to[0] = 0;
  }
}

static uint64_t inode_at(const char* path) {
  struct stat facts;
  return lstat(path, &facts) == 0 ? facts.st_ino : 0;
}

static uint64_t inode_of(pid_t id, int descriptor) {
  char path[64];
  struct stat facts;
  snprintf(path, sizeof path, "/proc/%d/fd/%d", id, descriptor);
  return stat(path, &facts) == 0 ? facts.st_ino : 0;
}

static int descriptor_of(const struct thread* thread) {
  const enum shape shape = thread->kind->shape;
  return (int)thread->arguments[shape == OUT ? 2 : shape == MAPPED ? 4 : 0];
}

static void find_paths(struct thread* thread) {
  const uint64_t* a = thread->arguments;
  const pid_t id = thread->id;
  thread->path[0] = thread->other[0] = 0;
  switch (thread->kind->shape) {
    case FD:
    case OUT:
    case MAPPED:
      return read_link(id, "fd", (int)descriptor_of(thread), thread->path);
    case PATH:
      return find_path(id, AT_FDCWD, a[0], thread->path);
    case AT:
      return find_path(id, (int)a[0], a[1], thread->path);
    case PATHS:
      find_path(id, AT_FDCWD, a[0], thread->path);
      return find_path(id, AT_FDCWD, a[1], thread->other);
    case ATS:
      if (thread->kind->family == LINK && (a[4] & AT_EMPTY_PATH))
        read_link(id, "fd", (int)a[0], thread->path);
      else
        find_path(id, (int)a[0], a[1], thread->path);
      return find_path(id, (int)a[2], a[3], thread->other);
    case SYMLINK:
      read_text(id, a[0], thread->path);
      return find_path(id, AT_FDCWD, a[1], thread->other);
    case SYMLINK_AT:
      read_text(id, a[0], thread->path);
      return find_path(id, (int)a[1], a[2], thread->other);
  }
}

static int is_beneath(const char* path, const char* root) {
  const size_t size = strlen(root);
  return strncmp(path, root, size) == 0 && (path[size] == '/' || path[size] == 0);
}

/* ---- records */

static void keep_data(struct thread* thread) {
  const uint64_t* a = thread->arguments;
  thread->data = NULL;
  thread->size = 0;
  if (thread->kind->family != WRITE) return;
  if (thread->kind->number == SYS_write || thread->kind->number == SYS_pwrite64) {
    thread->data = malloc(a[2] + 1);
    thread->size = read_memory(thread->id, a[1], thread->data, a[2]);
    return;
  }
  struct iovec pieces[1024];
  const size_t count = a[2] < 1024 ? a[2] : 1024;
  read_memory(thread->id, a[1], pieces, count * sizeof *pieces);
  size_t size = 0;
  for (size_t i = 0; i < count; ++i) size += pieces[i].iov_len;
  thread->data = malloc(size + 1);
  for (size_t i = 0; i < count; ++i)
    thread->size += read_memory(thread->id, (uint64_t)pieces[i].iov_base,
                                thread->data + thread->size, pieces[i].iov_len);
}

static uint64_t position_of(pid_t id, int descriptor) {
  char name[64];
  unsigned long position = 0;
  snprintf(name, sizeof name, "/proc/%d/fdinfo/%d", id, descriptor);
  FILE* file = fopen(name, "r");
  if (!file) return 0;
  if (fscanf(file, "pos: %lu", &position) != 1) position = 0;
  fclose(file);
  return position;
}

/* Reads the bytes that the kernel has copied, from their destination. */
static void read_copied(struct thread* thread, uint64_t offset, uint64_t size) {
  char name[64];
  snprintf(name, sizeof name, "/proc/%d/fd/%d", thread->id, descriptor_of(thread));
  const int file = open(name, O_RDONLY | O_CLOEXEC);
  thread->data = malloc(size + 1);
  const ssize_t got = pread(file, thread->data, size, (off_t)offset);
  thread->size = got < 0 ? 0 : (uint64_t)got;
  close(file);
}

static uint64_t offset_of(const struct thread* thread, uint64_t result) {
  const long number = thread->kind->number;
  uint64_t offset = 0;
  if (number == SYS_pwrite64 || number == SYS_pwritev ||
      (number == SYS_pwritev2 && thread->arguments[3] != ~0ULL))
    return thread->arguments[3];
  if (number == SYS_copy_file_range && thread->arguments[3]) { /* already advanced */
    read_memory(thread->id, thread->arguments[3], &offset, sizeof offset);
    return offset - result;
  }
  return position_of(thread->id, descriptor_of(thread)) - result;
}

static int write_fully(int to, const void* data, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t got = write(to, (const char*)data + done, size - done);
    if (got < 0) return -1;
    done += (size_t)got;
  }
  return 0;
}

static void write_record(struct thread* thread, int64_t result, int to) {
  struct record record = {.result = result, .before = thread->before, .ino = thread->ino};
  strncpy(record.name, thread->kind->name, sizeof record.name - 1);
  memcpy(record.arguments, thread->arguments, sizeof record.arguments);
  if (thread->kind->family == WRITE || thread->kind->family == COPY)
    record.offset = offset_of(thread, (uint64_t)result);
  if (thread->kind->family == COPY) read_copied(thread, record.offset, (uint64_t)result);
  if (thread->kind->family == OPEN) record.ino = inode_of(thread->id, (int)result);
  if (thread->kind->family == MKDIR) record.ino = inode_at(thread->path);
  if (thread->kind->shape == SYMLINK || thread->kind->shape == SYMLINK_AT)
    record.ino = inode_at(thread->other);
  record.path = (uint32_t)strlen(thread->path);
  record.other = (uint32_t)strlen(thread->other);
  record.data = thread->size;
  write_fully(to, &record, sizeof record);
  write_fully(to, thread->path, record.path);
  write_fully(to, thread->other, record.other);
  write_fully(to, thread->data, record.data);
}

/* ---- faults */

static void set_register(pid_t id, size_t offset, uint64_t value) {
  ptrace(PTRACE_POKEUSER, id, offset, value);
}
#define SET(id, name, value) set_register(id, offsetof(struct user_regs_struct, name), value)

/* Halves a transfer; vectors keep half of their first piece. Returns 0 if it has only one byte. */
static int shorten(struct thread* thread) {
  const long number = thread->kind->number;
  uint64_t* a = thread->arguments;
  if (number == SYS_write || number == SYS_pwrite64 || number == SYS_read ||
      number == SYS_pread64) {
    if (a[2] < 2) return 0;
    SET(thread->id, rdx, a[2] /= 2);
    return 1;
  }
  if (thread->kind->family != WRITE && thread->kind->family != READ) return 0;
  struct iovec piece;
  if (read_memory(thread->id, a[1], &piece, sizeof piece) != sizeof piece || piece.iov_len < 2)
    return 0;
  thread->place = a[1] + offsetof(struct iovec, iov_len);
  thread->length = piece.iov_len;
  thread->restored = 1;
  ptrace(PTRACE_POKEDATA, thread->id, thread->place, piece.iov_len / 2);
  SET(thread->id, rdx, a[2] = 1);
  return 1;
}

static void kill_all(void) {
  for (int i = 0; i < MOST_THREADS; ++i)
    if (threads[i].id) kill(threads[i].id, SIGKILL);
}

static void inject(struct thread* thread, const struct plan* plan, struct outcome* outcome) {
  if (plan->action == KILL) {
    kill_all();
  } else if (plan->action == SHORTEN) {
    if (!shorten(thread)) return;
  } else {
    thread->failing = 1;
    if (thread->kind->family != CLOSE)
      SET(thread->id, orig_rax, ~0ULL); /* skip the call; a failing close() still closes */
  }
  ++outcome->injected;
}

static void enter(struct thread* thread, const struct ptrace_syscall_info* info,
                  const struct plan* plan, struct outcome* outcome) {
  thread->kind = find_kind((long)info->entry.nr);
  if (!thread->kind) return;
  memcpy(thread->arguments, info->entry.args, sizeof thread->arguments);
  find_paths(thread);
  if (!is_beneath(thread->path, plan->root) && !is_beneath(thread->other, plan->root)) {
    thread->kind = NULL;
    return;
  }
  const enum family family = thread->kind->family;
  const int index = ++outcome->counts[family];
  if (plan->action != NOTHING && plan->family == (int)family &&
      (index == plan->index || (plan->onwards && index > plan->index)))
    inject(thread, plan, outcome);
  if (plan->record < 0) return;
  thread->before = inode_at(thread->other[0] ? thread->other : thread->path);
  thread->ino = thread->kind->shape <= MAPPED ? inode_of(thread->id, descriptor_of(thread))
                                              : inode_at(thread->path);
  keep_data(thread);
}

static void leave(struct thread* thread, const struct ptrace_syscall_info* info,
                  const struct plan* plan) {
  if (thread->failing) SET(thread->id, rax, (uint64_t)-plan->error);
  if (thread->restored) ptrace(PTRACE_POKEDATA, thread->id, thread->place, thread->length);
  if (plan->record >= 0 && !thread->failing && !info->exit.is_error)
    write_record(thread, info->exit.rval, plan->record);
  free(thread->data);
  thread->data = NULL;
  thread->failing = thread->restored = 0;
  thread->kind = NULL;
}

/* ---- the process tree */

static void handle_call(struct thread* thread, const struct plan* plan, struct outcome* outcome) {
  struct ptrace_syscall_info info;
  if (ptrace(PTRACE_GET_SYSCALL_INFO, thread->id, sizeof info, &info) <= 0) return;
  if (info.op == PTRACE_SYSCALL_INFO_ENTRY) enter(thread, &info, plan, outcome);
  if (info.op == PTRACE_SYSCALL_INFO_EXIT && thread->kind) leave(thread, &info, plan);
}

/* Returns the signal to deliver to the thread. */
static int handle_stop(pid_t id, int status, const struct plan* plan, struct outcome* outcome) {
  struct thread* known = find_thread(id, 0);
  struct thread* thread = known ? known : find_thread(id, 1);
  if (!thread) return SIGKILL;
  const int number = WSTOPSIG(status);
  if (number == (SIGTRAP | 0x80)) {
    handle_call(thread, plan, outcome);
    return 0;
  }
  if (number == SIGTRAP) return 0;           /* an event: fork, clone, exec */
  if (number == SIGSTOP && !known) return 0; /* of a new thread */
  return number;
}

static void watch(pid_t child, const struct plan* plan, struct outcome* outcome) {
  for (;;) {
    int status;
    const pid_t id = waitpid(-1, &status, __WALL);
    if (id < 0 && errno == EINTR && alarmed) {
      alarmed = 0;
      outcome->late = 1;
      kill_all();
    }
    if (id < 0 && errno == ECHILD) return;
    if (id < 0) continue;
    if (WIFSTOPPED(status)) {
      ptrace(PTRACE_SYSCALL, id, 0, handle_stop(id, status, plan, outcome));
    } else {
      if (id == child) outcome->status = status;
      forget_thread(id);
    }
  }
}

/* Traces a child that has called PTRACE_TRACEME and stopped itself, until its whole tree has ended.
 * Returns -1 if it cannot be traced. */
int trace_tree(pid_t child, const struct plan* plan, struct outcome* outcome);
int trace_tree(pid_t child, const struct plan* plan, struct outcome* outcome) {
  int status;
  memset(outcome, 0, sizeof *outcome);
  memset(threads, 0, sizeof threads);
  alarmed = 0;
  if (waitpid(child, &status, __WALL) != child || !WIFSTOPPED(status)) return -1;
  find_thread(child, 1);
  const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                       PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
  if (ptrace(PTRACE_SETOPTIONS, child, 0, options) != 0) return -1;
  struct sigaction action = {.sa_handler = note_alarm}, before;
  const struct itimerval limit = {.it_value = {.tv_sec = plan->seconds}}, none = {0};
  sigaction(SIGALRM, &action, &before);
  setitimer(ITIMER_REAL, &limit, NULL);
  ptrace(PTRACE_SYSCALL, child, 0, 0);
  watch(child, plan, outcome);
  setitimer(ITIMER_REAL, &none, NULL);
  sigaction(SIGALRM, &before, NULL);
  return 0;
}
