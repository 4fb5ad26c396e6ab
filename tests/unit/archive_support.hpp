// What the tests of room archive share: a scratch directory.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

namespace pario::archive {

/// An empty directory while the test runs.
class Scratch : public testing::Test {
 protected:
  Scratch() {
    std::string place = testing::TempDir() + "pario-archive-XXXXXX";
    place_ = ::mkdtemp(place.data());
  }
  ~Scratch() override { std::filesystem::remove_all(place_); }

  std::filesystem::path place_;
};

}  // namespace pario::archive
