// Fetches records of an index by seekg and read; each seek throws the buffer away.
#include <fstream>
#include <iostream>
#include <vector>

#include "work.h"

struct Record {
  char name[60];
  unsigned value;
};

int main(int argc, char** argv) {
  const auto wanted = static_cast<size_t>(read_size(argc, argv));
  std::ifstream in("records.bin", std::ios::binary | std::ios::ate);
  const auto count = static_cast<size_t>(in.tellg()) / sizeof(Record);
  std::vector<Record> all;
  if (is_repaired(argc, argv)) {
    all.resize(count);
    in.seekg(0);
    in.read(reinterpret_cast<char*>(all.data()),
            static_cast<std::streamsize>(count * sizeof(Record)));
  }
  unsigned long sum = 0;
  for (size_t i = 0; i < wanted; i++) {
    Record record{};
    if (!all.empty()) {
      record = all[pick(i, count)];
    } else {
      in.seekg(static_cast<std::streamoff>(pick(i, count) * sizeof record));
      in.read(reinterpret_cast<char*>(&record), sizeof record);
    }
    sum += record.value % 1000;
  }
  compute(1500);
  std::cout << wanted << " records, sum " << sum << '\n';
}
