// Fixtures of the tests of module records: a scratch directory, files of bytes.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "data/records/records.hpp"
#include "directory.hpp"
#include "read_file.hpp"

namespace pario::records {

constexpr std::uint64_t kMiB = 1 << 20;

/// An empty directory while the test runs.
class Records : public testing::Test {
 protected:
  std::string file(const std::string& name) const { return directory + "/" + name; }
  std::string make(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories(std::filesystem::path(file(name)).parent_path());
    std::ofstream(file(name), std::ios::binary) << bytes;
    return file(name);
  }
  static std::string bytes_of(const std::string& path) { return read_file(path); }
  /// Lists the names in the directory, to find the remains of a failed call.
  std::vector<std::string> entries() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory))
      names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }

  Directory scratch;
  std::string directory = scratch.path();
};

inline std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

}  // namespace pario::records
