// Fixture of the tests of module archive: a scratch directory.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>

#include "directory.hpp"

namespace pario::archive {

/// An empty directory while the test runs.
class Scratch : public testing::Test {
 protected:
  Directory directory_;
  std::filesystem::path place_ = directory_.path();
};

}  // namespace pario::archive
