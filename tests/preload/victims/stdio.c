// stdio calls in known numbers. Usage: stdio SCENARIO; creates files in the current directory.
#define _GNU_SOURCE
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>

#define CHECK(condition)  \
  do {                    \
    if (!(condition)) {   \
      perror(#condition); \
      abort();            \
    }                     \
  } while (0)

static char block[8192];

static void blocks(void) {
  FILE* f = fopen("blocks", "w+");
  CHECK(fwrite(block, 10, 100, f) == 100 && fwrite_unlocked(block, 1, 24, f) == 24);  // 0, 1000
  CHECK(fputs("line\n", f) >= 0 && fputs_unlocked("x", f) >= 0);                      // 1024, 1029
  CHECK(fprintf(f, "%d %s\n", 42, "words") == 9);                                     // 1030
  CHECK(fseek(f, 10, SEEK_SET) == 0 && ftell(f) == 10);
  CHECK(fread(block, 1, 100, f) == 100 && fread_unlocked(block, 2, 7, f) == 7);  // 10, 110
  CHECK(fflush(f) == 0);
  rewind(f);
  CHECK(fread(block, 1, sizeof block, f) == 1039 && fread(block, 1, 1, f) == 0);  // 0
  CHECK(fclose(f) == 0);
}

static void text(void) {
  FILE* f = fopen("text", "w");
  for (int i = 0; i < 100; ++i) CHECK(fprintf(f, "%3d %3d\n", i, i * 2) == 8);
  CHECK(fclose(f) == 0 && (f = fopen("text", "r")) != NULL);
  char line[100];
  char* grown = NULL;
  size_t room = 0;
  int a, b;
  for (int i = 0; i < 40; ++i) CHECK(fgets(line, sizeof line, f) == line && strlen(line) == 8);
  for (int i = 40; i < 60; ++i) CHECK(getline(&grown, &room, f) == 8);
  for (int i = 60; i < 100; ++i) CHECK(fscanf(f, "%d%d", &a, &b) == 2 && a == i && b == 2 * i);
  CHECK(fscanf(f, "%d", &a) == EOF && fclose(f) == 0);
  free(grown);
}

static void characters(void) {
  FILE* f = fopen("characters", "w");
  for (int i = 0; i < 10000; ++i) CHECK(fputc('a' + i % 26, f) != EOF);
  for (int i = 0; i < 5000; ++i) CHECK(putc_unlocked('b', f) != EOF);
  CHECK(fwrite(block, 1, 100, f) == 100);
  for (int i = 0; i < 77; ++i) CHECK(putc('\n', f) != EOF);
  CHECK(fclose(f) == 0 && (f = fopen("characters", "r")) != NULL);
  for (int i = 0; i < 9000; ++i) CHECK(fgetc(f) == 'a' + i % 26);
  CHECK(ungetc('z', f) == 'z' && fgetc(f) == 'z');
  for (int i = 9000; i < 15000; ++i) CHECK(getc_unlocked(f) != EOF);
  CHECK(fread(block, 1, 100, f) == 100);
  int rest = 0;
  while (getc(f) != EOF) ++rest;
  CHECK(rest == 77 && fclose(f) == 0);
}

static void leave_open(void) {
  FILE* f = fopen("unclosed", "w");
  for (int i = 0; i < 6000; ++i) fputc('u', f);
}

static void* put_many(void* stream) {
  for (int i = 0; i < 20000; ++i) {
    fputc('t', stream);
    if (i % 100 == 0) fputs("twenty characters..\n", stream);
  }
  return NULL;
}

static void threads(void) {
  FILE* f = fopen("threads", "w");
  pthread_t workers[4];
  for (int i = 0; i < 4; ++i) CHECK(pthread_create(&workers[i], NULL, put_many, f) == 0);
  for (int i = 0; i < 4; ++i) CHECK(pthread_join(workers[i], NULL) == 0);
  CHECK(fclose(f) == 0);
}

static void buffers(void) {
  static char large[1 << 20];
  FILE* f = fopen("large", "w");
  CHECK(setvbuf(f, large, _IOFBF, sizeof large) == 0 && fputs("x", f) >= 0 && fclose(f) == 0);
  f = fopen("none", "w");
  setbuf(f, NULL);
  CHECK(fputs("x", f) >= 0 && fputc('y', f) == 'y' && fclose(f) == 0);
  f = fopen("lines", "w");
  setlinebuf(f);
  CHECK(fputs("x\n", f) >= 0 && fclose(f) == 0);
  f = fopen("usual", "w");
  CHECK(fputs("x", f) >= 0 && fclose(f) == 0);
}

static void streams(void) {
  FILE* f = fopen("append", "w");
  CHECK(fputs("12345", f) >= 0 && fclose(f) == 0 && (f = fopen("append", "a")) != NULL);
  CHECK(fputs("678", f) >= 0);  // 5
  CHECK(freopen("reopened", "w", f) == f && fputs("ab", f) >= 0 && fclose(f) == 0);
  const int fd = dup(1);
  f = fdopen(fd, "w");
  CHECK(fputs("to stdout\n", f) >= 0 && fclose(f) == 0);
  CHECK((f = tmpfile()) != NULL && fputs("temporary", f) >= 0 && fclose(f) == 0);
  char* memory;
  size_t size;
  CHECK((f = open_memstream(&memory, &size)) != NULL && fputs("memory", f) >= 0 && fclose(f) == 0 &&
        size == 6);
  CHECK((f = popen("cat", "w")) != NULL && fputs("through a pipe\n", f) >= 0 && pclose(f) == 0);
  CHECK(fopen("no/such", "r") == NULL);
}

// Two streams on one open file description, each with its own buffer; a fork while both buffers
// hold characters.
static void share_description(void) {
  FILE* a = fopen("shared", "w");
  FILE* b = fdopen(dup(fileno(a)), "w");
  for (int i = 0; i < 5000; ++i)
    CHECK(fputc('a', a) == 'a' && (i % 2 != 0 || fputc('b', b) == 'b'));
  CHECK(fflush(a) == 0 && fflush(b) == 0);
  CHECK(fputs("cc", a) >= 0 && fputc('d', a) == 'd' && fputc('d', a) == 'd');
  if (fork() == 0) _exit(0);
  wait(NULL);
  CHECK(fclose(a) == 0 && fclose(b) == 0);
}

static void standard(void) {
  int c, n = 0;
  while ((c = getchar()) != EOF) ++n;
  printf("%d characters\n", n);
  puts("puts");
  putchar('!');
  fputs("to stderr\n", stderr);
  dprintf(1, "%s", "dprintf\n");
}

// 12 lines of 9 bytes (6 characters, two of them of more than one byte), 5 single characters of 7
// bytes, 2 formatted ones of 7 bytes.
static void wide(void) {
  CHECK(setlocale(LC_ALL, "C.UTF-8") != NULL);
  FILE* f = fopen("wide", "w");
  for (int i = 0; i < 10; ++i) CHECK(fputws(L"a\u00e4b\u20acc\n", f) >= 0);
  CHECK(fflush(f) == 0);
  for (int i = 0; i < 2; ++i) CHECK(fputws(L"a\u00e4b\u20acc\n", f) >= 0);
  for (const wchar_t* c = L"wi\u20acde"; *c != 0; ++c) CHECK(fputwc(*c, f) == (wint_t)*c);
  for (int i = 0; i < 2; ++i) CHECK(fwprintf(f, L"%3d %2d\n", i, i) == 7);
  CHECK(fclose(f) == 0 && (f = fopen("wide", "r")) != NULL);
  wchar_t line[100];
  int a, b;
  for (int i = 0; i < 12; ++i) CHECK(fgetws(line, 100, f) == line && wcslen(line) == 6);
  for (int i = 0; i < 5; ++i) CHECK(getwc(f) == (wint_t)L"wi\u20acde"[i]);
  CHECK(fwscanf(f, L"%d %d", &a, &b) == 2 && fwscanf(f, L"%d %d", &a, &b) == 2);
  CHECK(fgetwc(f) == L'\n' && fgetwc(f) == WEOF && fclose(f) == 0);
}

static const struct {
  const char* name;
  void (*run)(void);
} scenarios[] = {{"blocks", blocks},         {"text", text},
                 {"characters", characters}, {"unclosed", leave_open},
                 {"threads", threads},       {"buffers", buffers},
                 {"streams", streams},       {"shared", share_description},
                 {"standard", standard},     {"wide", wide}};

int main(int argc, char** argv) {
  for (size_t i = 0; argc == 2 && i < sizeof scenarios / sizeof scenarios[0]; ++i)
    if (strcmp(argv[1], scenarios[i].name) == 0) return scenarios[i].run(), 0;
  return 2;
}
