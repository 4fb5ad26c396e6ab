// Logs each event with std::endl, which flushes the stream.
#include <fstream>
#include <iostream>

#include "work.h"

int main(int argc, char** argv) {
  const long events = read_size(argc, argv);
  std::ofstream log("events.log");
  for (long i = 0; i < events; i++) {
    log << "event " << i << " handled by the dispatcher";
    if (is_repaired(argc, argv))
      log << '\n';
    else
      log << std::endl;
  }
  log.close();
  compute(1500);
  std::cout << events << " events\n";
}
