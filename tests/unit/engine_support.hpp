// Files of threads as ranks, in a temporary directory.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include "directory.hpp"
#include "parallel/engine/engine.hpp"
#include "read_file.hpp"

namespace pario::engine {

/// Four ranks on two nodes.
constexpr int kFour[] = {0, 0, 1, 1};

inline OpenRequest fresh(const std::string& path) {
  return {.path = path, .flags = O_RDWR | O_CREAT | O_TRUNC, .hints = hints::default_file_hints()};
}

inline std::vector<std::byte> contents(const std::string& path) {
  const std::string text = read_file(path);
  std::vector<std::byte> bytes(text.size());
  std::ranges::transform(text, bytes.begin(), [](char c) { return static_cast<std::byte>(c); });
  return bytes;
}

/// A byte that depends on its offset.
inline std::byte byte_at(std::uint64_t offset) {
  return static_cast<std::byte>((offset * 2654435761u >> 7) | 1);
}

inline std::vector<std::byte> bytes_at(std::uint64_t begin, std::uint64_t length) {
  std::vector<std::byte> bytes(length);
  for (std::uint64_t i = 0; i < length; ++i) bytes[i] = byte_at(begin + i);
  return bytes;
}

/// Contiguous memory, contiguous file.
inline pattern::Access plain(std::vector<std::byte>& buffer, std::uint64_t offset) {
  return {.buffer = buffer.data(), .position = offset, .bytes = buffer.size()};
}

/// Part `part` of `parts`: pieces of `piece` bytes that the parts take in turn.
inline pattern::FileView make_alternating_view(int part, int parts, std::uint64_t piece) {
  const auto extent = static_cast<std::int64_t>(piece * static_cast<std::uint64_t>(parts));
  return {.displacement = static_cast<std::uint64_t>(part) * piece,
          .filetype = pattern::TypeMap::block(piece).with_extent(0, extent)};
}

inline void fill(const pattern::Access& access) {
  for (std::uint64_t i = 0; i < access.bytes; ++i)
    access.buffer[i] = byte_at(access.view.offset_of(access.position + i));
}

/// Opens the file on all ranks, calls `body`, closes the file.
inline void with_file(std::span<const int> node_of, const OpenRequest& request,
                      const std::function<void(SharedFile& file, comm::Comm& ranks)>& body) {
  comm::run_as_threads(node_of, [&](std::shared_ptr<comm::Comm> ranks) {
    auto file = SharedFile::open(ranks, request);
    ASSERT_TRUE(file.ok()) << file.error().text();
    body(**file, *ranks);
    const base::Status closed = (*file)->close();
    EXPECT_TRUE(closed.ok()) << closed.error().text();
  });
}

/// Ranks by nodes: one rank, one node, several nodes of several sizes.
inline std::vector<std::vector<int>> shapes() {
  return {{0}, {0, 0}, {0, 0, 0, 0}, {0, 1}, {0, 0, 1, 1}, {0, 1, 0, 2, 1, 0, 2, 2}};
}

#define EXPECT_OK(expression)                                                     \
  do {                                                                            \
    const auto outcome_ = (expression);                                           \
    EXPECT_TRUE(outcome_.ok()) << (outcome_.ok() ? "" : outcome_.error().text()); \
  } while (false)

}  // namespace pario::engine
