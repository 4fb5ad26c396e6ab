/* A log that is opened, appended to and closed for every line. Repaired: opened once. */
#include "counted.h"

enum { STEPS = 20, LINES = 15000, LINE = 100 };

static void log_step(Program* p, const char* path, FILE* kept, long lines, size_t* written) {
  char line[LINE];
  for (long i = 0; i < lines; i++, *written += LINE) {
    fill(line, LINE, *written);
    FILE* log = p->repaired ? kept : open_stream(p, path, "a");
    put(p, log, line, LINE);
    if (!p->repaired) close_stream(p, log);
  }
}

int main(int argc, char** argv) {
  Program p;
  begin(&p, "open_close", "stdio", argc, argv);
  const char* path = in_directory(&p, "open_close.log");
  remove(path);
  if (p.prepare) return 0;
  size_t written = 0;
  FILE* kept = p.repaired ? open_stream(&p, path, "a") : NULL;
  for (int step = 0; step < STEPS; step++) {
    compute(&p, 400);
    const double start = now();
    log_step(&p, path, kept, scale(&p, LINES), &written);
    p.io_seconds += now() - start;
  }
  if (kept) close_stream(&p, kept);
  return finish(&p, written == (size_t)(STEPS * scale(&p, LINES) * LINE));
}
