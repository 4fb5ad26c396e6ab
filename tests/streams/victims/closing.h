// Functions of programs that close and open one file repeatedly. Needs _GNU_SOURCE.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char kName[] = "out.dat";

static int must(const char* what, long result) {
  if (result < 0) {
    printf("%s: %s\n", what, strerrorname_np(errno));
    exit(1);
  }
  return (int)result;
}

static void say(const char* what, long result) {
  printf("%s %ld %s\n", what, result, result < 0 ? strerrorname_np(errno) : "");
}

static int open_one(int flags) { return must("open", open(kName, flags, 0644)); }

/// Returns the number of the process's descriptors on the file in the kernel.
static int count_descriptors(void) {
  int count = 0;
  DIR* all = opendir("/proc/self/fd");
  char path[300], target[300];
  for (struct dirent* one; (one = readdir(all)) != NULL;) {
    snprintf(path, sizeof path, "/proc/self/fd/%s", one->d_name);
    const long size = readlink(path, target, sizeof target - 1);
    if (size <= 0) continue;
    target[size] = 0;
    count += strstr(target, kName) != NULL;
  }
  closedir(all);
  return count;
}
