// Calls from known lines, for test_call_sites.py. A line with a mark in a comment is the call site.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define OUTSIDE __attribute__((noinline, noclone))

static int file;
static void check(int right) {
  if (!right) _exit(9);
}

OUTSIDE static void put(const char* data) {
  ssize_t put = write(file, data, 10);  // mark: put
  check(put == 10);
}

OUTSIDE static void put_from_a(void) {
  put("0123456789");  // mark: caller-a
  asm volatile("");
}

OUTSIDE static void put_from_b(void) {
  put("abcdefghij");  // mark: caller-b
  asm volatile("");
}

OUTSIDE static void put_deep(int depth) {
  volatile char room[64];
  memset((char*)room, depth, sizeof room);
  if (depth == 0)
    put("0123456789");
  else
    put_deep(depth - 1);
  asm volatile("");
}

OUTSIDE static void put_after_variable_frame(int size) {
  char room[size];
  memset(room, 'x', (size_t)size);
  check(write(file, room, 10) == 10);  // mark: variable
}

static void handle(int number) {
  (void)number;
  check(write(file, "0123456789", 10) == 10);  // mark: handler
}

static void handle_on_other_stack(void) {
  stack_t other = {.ss_sp = malloc(SIGSTKSZ), .ss_size = (size_t)SIGSTKSZ};
  sigaltstack(&other, NULL);
  struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
  sigaction(SIGUSR1, &action, NULL);
  for (int i = 0; i < 3; ++i) raise(SIGUSR1);
}

static ucontext_t outer, inner;
static void coroutine(void) {
  for (int i = 0; i < 4; ++i) check(write(file, "0123456789", 10) == 10);  // mark: coroutine
}

static void run_coroutine(void) {
  const size_t size = 64 << 10;
  char* room = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  getcontext(&inner);
  inner.uc_stack.ss_sp = room;
  inner.uc_stack.ss_size = size;
  inner.uc_link = &outer;
  makecontext(&inner, coroutine, 0);
  swapcontext(&outer, &inner);
  munmap(room, size);
}

static void* run_thread(void* size) {
  (void)size;
  for (int i = 0; i < 5; ++i) check(write(file, "0123456789", 10) == 10);  // mark: thread
  return NULL;
}

static void run_threads(void) {
  for (size_t kib = 64; kib <= 4096; kib *= 4) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kib << 10);
    pthread_t thread;
    check(pthread_create(&thread, &attributes, run_thread, NULL) == 0);
    pthread_join(thread, NULL);
  }
}

// Machine code without unwind table and without an object.
static void run_generated_code(void) {
#if defined(__x86_64__)
  // push %rbp; sub $64, %rsp; call *%rdi; add $64, %rsp; pop %rbp; ret
  static const unsigned char code[] = {0x55, 0x48, 0x83, 0xec, 0x40, 0xff, 0xd7,
                                       0x48, 0x83, 0xc4, 0x40, 0x5d, 0xc3};
  void* memory =
      mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  check(memory != MAP_FAILED);
  memcpy(memory, code, sizeof code);
  for (int i = 0; i < 3; ++i) ((void (*)(void (*)(void)))memory)(put_from_a);
#endif
}

static void run_children(void) {
  for (int i = 0; i < 2; ++i) {
    const pid_t child = i == 0 ? fork() : vfork();
    if (child == 0) {
      if (i == 0) put_from_b();
      _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    check(status == 0);
  }
}

int main(int count, char** words) {
  check(count == 2);
  file = open(words[1], O_CREAT | O_WRONLY | O_APPEND, 0600);  // mark: open
  for (int i = 0; i < 300; ++i) put_from_a();
  for (int i = 0; i < 100; ++i) put_from_b();
  for (int i = 0; i < 200; ++i) put_deep(i);
  for (int i = 16; i < 200; ++i) put_after_variable_frame(i);
  handle_on_other_stack();
  run_coroutine();
  run_threads();
  run_generated_code();
  run_children();
  FILE* stream = fopen(words[1], "r");
  char part[10];
  while (fread(part, 1, 10, stream) == 10) {  // mark: fread
  }
  fclose(stream);
  return 0;
}
