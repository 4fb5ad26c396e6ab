// Finds the frames that exist among all numbers, by opening each.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <string>

#include "work.h"

int main(int argc, char** argv) {
  const long frames = read_size(argc, argv);
  std::set<std::string> names;
  if (is_repaired(argc, argv))
    for (const auto& entry : std::filesystem::directory_iterator("frames"))
      names.insert(entry.path().filename());
  long found = 0;
  for (long i = 0; i < frames; i++) {
    const std::string name = "frame" + std::to_string(i);
    found += is_repaired(argc, argv) ? names.count(name) : std::ifstream("frames/" + name).good();
  }
  compute(500);
  std::cout << found << " frames\n";
}
