// Headers of tar members (POSIX.1-2001, "pax"; holes as in GNU tar's sparse format 1.0).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/base.hpp"

namespace pario::archive {

inline constexpr std::size_t kBlock = 512;

enum class Type : char {
  file = '0',
  hard_link = '1',
  symbolic_link = '2',
  character_device = '3',
  block_device = '4',
  directory = '5',
  pipe = '6',
};

/// True if a byte of an archive is one of the types above.
constexpr bool is_known(Type type) { return type >= Type::file && type <= Type::pipe; }
constexpr bool is_device_or_pipe(Type type) {
  return type == Type::character_device || type == Type::block_device || type == Type::pipe;
}

// Bounds of memory; pack observes them, and unpack rejects archives that exceed them.
inline constexpr std::size_t kMostPieces = 1 << 20;        ///< of a file with holes
inline constexpr std::uint64_t kLongestMap = 64 << 20;     ///< bytes of the map of these
inline constexpr std::uint64_t kLongestHeader = 64 << 20;  ///< bytes

/// The header in front of a member's bytes.
struct Header {
  std::string name = {}, target = {};
  Type type = Type::file;
  std::uint32_t mode = 0;  ///< permissions
  std::uint64_t user = 0, group = 0;
  std::int64_t modified = 0;  ///< nanoseconds since 1970
  std::uint64_t stored =
      0;  ///< bytes in the archive after the header, without the padding to a block
  std::uint64_t size = 0;                                            ///< of the file
  std::uint32_t major = 0, minor = 0;                                ///< of a device
  bool sparse = false;                                               ///< `stored` begins with a map
  std::vector<std::pair<std::string, std::string>> attributes = {};  ///< extended ones
};

/// Formats a header, in whole blocks.
std::string text_of(const Header& header);

/// Parses the complete header at the start of `text`. Returns its length; 0: it is no header.
std::size_t parse(std::string_view text, Header& header);

/// Formats the map of a file with holes, in whole blocks.
std::string map_of(std::span<const base::Extent> data, std::uint64_t size);
/// Parses a map at the start of `text`. Returns its length; 0: it is no map.
std::size_t parse_map(std::string_view text, std::vector<base::Extent>& data);

}  // namespace pario::archive
