// Calls on descriptors other than reads and writes, on files that are closed and reopened.
// descriptors HOW
#define _GNU_SOURCE
#include <aio.h>
#include <linux/fs.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "closing.h"

static void come_and_go(void) {
  const int fd = open_one(O_RDWR | O_CREAT);
  must("write", write(fd, "bytes", 5));
  must("close", close(fd));
}

static void show(void) {
  char text[100];
  const int fd = open_one(O_RDONLY);
  const long size = must("read", read(fd, text, sizeof text));
  printf("it holds %.*s\n", (int)size, text);
  must("close", close(fd));
}

static void show_held(const char* after) {
  printf("held after %s: %d\n", after, count_descriptors());
}

/// Calls on a closed descriptor fail.
static void closed(void) {
  struct stat status;
  come_and_go();
  const int fd = open_one(O_RDWR);
  must("close", close(fd));
  say("ioctl", ioctl(fd, FIONREAD, &(int){0}));
  say("fchown", fchown(fd, (uid_t)-1, (gid_t)-1));
  say("fchmod", fchmod(fd, 0600));
  say("futimens", futimens(fd, NULL));
  say("fsetxattr", fsetxattr(fd, "user.x", "x", 1, 0));
  say("fremovexattr", fremovexattr(fd, "user.x"));
  say("ftruncate", ftruncate(fd, 1));
  say("fallocate", fallocate(fd, 0, 0, 1));
  say("dprintf", dprintf(fd, "more"));
  say("fsync", fsync(fd));
  say("fstat", fstat(fd, &status));
  say("fcntl", fcntl(fd, F_GETFL));
  show();
}

/// Each opening checks the permissions of the file.
static void permissions(void) {
  struct stat now;
  come_and_go();
  must("stat", stat(kName, &now));
  must("chown", chown(kName, now.st_uid, now.st_gid));
  show_held("chown");
  come_and_go();
  must("lchown", lchown(kName, now.st_uid, now.st_gid));
  show_held("lchown");
  come_and_go();
  must("fchownat", fchownat(AT_FDCWD, kName, now.st_uid, now.st_gid, 0));
  show_held("fchownat");
  come_and_go();
  const int attributes = setxattr(kName, "user.x", "x", 1, 0);
  show_held("setxattr");
  come_and_go();
  if (attributes == 0) must("removexattr", removexattr(kName, "user.x"));
  for (int i = 0; i < 4; ++i) {
    static const char* const kCalls[] = {"fchmod", "fchown", "fsetxattr", "ioctl"};
    const int fd = open_one(O_RDWR);
    if (i == 0) must("fchmod", fchmod(fd, 0600));
    if (i == 1) must("fchown", fchown(fd, now.st_uid, now.st_gid));
    if (i == 2 && fsetxattr(fd, "user.x", "x", 1, 0) != 0) unlink(kName);
    if (i == 3) must("ioctl", ioctl(fd, FIONREAD, &(int){0}));
    must("close", close(fd));
    show_held(kCalls[i]);
  }
}

static void send_one(int socket, int fd) {
  char room[CMSG_SPACE(sizeof fd)] = {0}, byte = 'x';
  struct iovec data = {&byte, 1};
  struct msghdr message = {
      .msg_iov = &data, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
  struct cmsghdr* head = CMSG_FIRSTHDR(&message);
  *head = (struct cmsghdr){
      .cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
  memcpy(CMSG_DATA(head), &fd, sizeof fd);
  must("sendmsg", sendmsg(socket, &message, 0));
}

static int receive_one(int socket) {
  char room[CMSG_SPACE(sizeof(int))], byte;
  struct iovec data = {&byte, 1};
  struct msghdr message = {
      .msg_iov = &data, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
  must("recvmsg", recvmsg(socket, &message, 0));
  int fd;
  memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
  return fd;
}

/// The receiver of a descriptor shares its offset, and sees the written bytes.
static void send_descriptor(void) {
  int ends[2];
  must("socketpair", socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
  const pid_t child = fork();
  if (child == 0) {
    const int given = receive_one(ends[1]);
    say("offset", lseek(given, 0, SEEK_CUR));
    must("read", read(ends[1], &(char){0}, 1));
    say("offset", lseek(given, 0, SEEK_CUR));
    must("write", write(given, "theirs", 6));
    fflush(stdout);
    _exit(0);
  }
  come_and_go();
  const int fd = open_one(O_RDWR);
  must("write", write(fd, "mine ", 5));
  send_one(ends[0], fd);
  must("close", close(fd));
  const int again = open_one(O_RDWR);
  say("offset", lseek(again, 0, SEEK_CUR));
  fflush(stdout);
  must("write", write(ends[0], "", 1));
  waitpid(child, NULL, 0);
  must("close", close(again));
  show();
}

/// Effects of ioctl and fcntl end with their descriptor; they see the written bytes.
static void call_ioctl(void) {
  come_and_go();
  int fd = open_one(O_RDWR);
  must("write", write(fd, "12345678", 8));
  must("lseek", lseek(fd, 2, SEEK_SET));
  int ahead = 0;
  say("FIONREAD", ioctl(fd, FIONREAD, &ahead));
  printf("%d ahead\n", ahead);
  must("FIOCLEX", ioctl(fd, FIOCLEX));
  must("close", close(fd));
  fd = open_one(O_RDWR);
  say("flags", fcntl(fd, F_GETFD));
  must("write", write(fd, "abcdefgh", 8));
  const int copy = must("open", open("copy", O_RDWR | O_CREAT, 0644));
  if (ioctl(copy, FICLONE, fd) == 0) {
    char text[8] = "";
    printf("cloned %ld %.8s\n", (long)pread(copy, text, 8, 0), text);
  }
  must("close", close(fd));
  fd = open_one(O_RDONLY);
  say("lease", fcntl(fd, F_SETLEASE, F_RDLCK));
  must("close", close(fd));
}

/// dprintf keeps the order among other writes.
static void print_formatted(void) {
  const int fd = open_one(O_RDWR | O_CREAT);
  must("write", write(fd, "one ", 4));
  say("dprintf", dprintf(fd, "%s ", "two"));
  must("write", write(fd, "three", 5));
  struct aiocb request = {.aio_fildes = fd};
  must("aio_fsync", aio_fsync(O_SYNC, &request));
  while (aio_error(&request) == EINPROGRESS) usleep(1000);
  say("aio_fsync", aio_return(&request));
  must("close", close(fd));
  show();
}

/// These calls on a closed descriptor may succeed; they change nothing.
static void harmless(void) {
  come_and_go();
  const int fd = open_one(O_RDWR);
  must("close", close(fd));
  posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  readahead(fd, 0, 1);
  poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 0);
  isatty(fd);
  flistxattr(fd, NULL, 0);
  show();
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "";
  if (strcmp(how, "closed") == 0) closed();
  if (strcmp(how, "permissions") == 0) permissions();
  if (strcmp(how, "handed") == 0) send_descriptor();
  if (strcmp(how, "asked") == 0) call_ioctl();
  if (strcmp(how, "printed") == 0) print_formatted();
  if (strcmp(how, "harmless") == 0) harmless();
  return 0;
}
