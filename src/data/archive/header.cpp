#include "data/archive/header.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>

#include "data/records/tar_block.hpp"

namespace pario::archive {
namespace {

using records::number_in;
using records::text_in;
using Block = records::TarBlock;

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kLatest =
    std::numeric_limits<std::int64_t>::max() / kSecond - 1;  ///< in seconds
constexpr std::string_view kAttribute = "SCHILY.xattr.";

template <std::size_t N>
bool fits(std::uint64_t number, const char (&)[N]) {
  return number >> (3 * (N - 1)) == 0;
}

/// Writes a number in octal, with a terminating zero. Leaves out a number that does not fit: a
/// record of the extended header contains it.
template <std::size_t N>
void put(char (&field)[N], std::uint64_t number) {
  if (!fits(number, field)) number = 0;
  for (std::size_t i = N - 1; i-- > 0; number >>= 3)
    field[i] = static_cast<char>('0' + (number & 7));
  field[N - 1] = '\0';
}

template <std::size_t N>
void put(char (&field)[N], std::string_view text) {
  text.copy(field, N);
}

void seal(Block& block) {
  put(block.magic, std::string_view("ustar\0", 6));
  put(block.version, std::string_view("00"));
  put(block.sum, records::checksum_of(block));
}

void fill_up(std::string& text) { text.resize(base::round_up(text.size(), kBlock)); }

/// Appends "LENGTH key=value\n", where LENGTH includes its own digits.
void add_record(std::string& out, std::string_view key, std::string_view value) {
  const std::size_t rest = key.size() + value.size() + 3;
  std::size_t length = rest + 1;
  while (std::to_string(length).size() + rest != length) ++length;
  out.append(std::to_string(length)).append(" ").append(key).append("=").append(value).append("\n");
}

/// Escapes the name of an attribute as GNU tar does, because '=' ends the key of a record.
std::string escape(std::string_view name) {
  std::string out;
  for (const char letter : name) {
    if (letter == '=' || letter == '%')
      out += letter == '=' ? "%3D" : "%25";
    else
      out += letter;
  }
  return out;
}

std::string unescape(std::string_view name) {
  std::string out;
  for (; !name.empty(); name.remove_prefix(1)) {
    const bool is_escaped = name.starts_with("%3D") || name.starts_with("%25");
    out += !is_escaped ? name.front() : name[1] == '3' ? '=' : '%';
    if (is_escaped) name.remove_prefix(2);
  }
  return out;
}

std::string seconds_of(std::int64_t time) {
  const bool negative = time < 0;
  const auto whole = static_cast<std::uint64_t>(std::abs(time / kSecond)),
             part = static_cast<std::uint64_t>(std::abs(time % kSecond));
  std::string digits = std::to_string(part);
  digits.insert(0, 9 - digits.size(), '0');
  return (negative ? "-" : "") + std::to_string(whole) + (part == 0 ? "" : "." + digits);
}

std::int64_t time_in(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  std::int64_t whole = 0, part = 0;
  const char* const end = std::to_address(text.end());
  const char* at = std::from_chars(std::to_address(text.begin()), end, whole).ptr;
  std::string digits = at != end ? std::string(at + 1, end) : "";
  digits.resize(9, '0');
  std::from_chars(digits.data(), digits.data() + 9, part);
  return (negative ? -1 : 1) * (std::clamp<std::int64_t>(whole, 0, kLatest) * kSecond + part);
}

/// The records for the values that do not fit into the block.
std::string records_of(const Header& header) {
  static constexpr Block none{};  // for the sizes of its fields
  std::string out;
  if (header.sparse) {
    add_record(out, "GNU.sparse.major", "1");
    add_record(out, "GNU.sparse.minor", "0");
    add_record(out, "GNU.sparse.name", header.name);
    add_record(out, "GNU.sparse.realsize", std::to_string(header.size));
  } else if (header.name.size() > sizeof none.name) {
    add_record(out, "path", header.name);
  }
  if (header.target.size() > sizeof none.target) add_record(out, "linkpath", header.target);
  if (!fits(header.stored, none.size)) add_record(out, "size", std::to_string(header.stored));
  if (!fits(header.user, none.user)) add_record(out, "uid", std::to_string(header.user));
  if (!fits(header.group, none.group)) add_record(out, "gid", std::to_string(header.group));
  const bool is_whole = header.modified >= 0 && header.modified % kSecond == 0;
  if (!is_whole || !fits(static_cast<std::uint64_t>(header.modified / kSecond), none.modified))
    add_record(out, "mtime", seconds_of(header.modified));
  for (const auto& [name, value] : header.attributes)
    add_record(out, std::string(kAttribute) + escape(name), value);
  return out;
}

std::string as_text(const Block& block) {
  return {reinterpret_cast<const char*>(&block), sizeof block};
}

std::string with_header(const std::string& records, const Header& header) {
  Block block{};
  put(block.name, std::string_view("pax/" + header.name));
  put(block.mode, 0644);
  put(block.size, records.size());
  put(block.modified, 0);
  block.type = 'x';
  seal(block);
  std::string out = as_text(block) + records;
  fill_up(out);
  return out;
}

void take(std::string_view key, std::string_view value, Header& header) {
  const auto number = [&] {
    std::uint64_t out = 0;
    std::from_chars(value.data(), value.data() + value.size(), out);
    return out;
  };
  if (key == "path" || key == "GNU.sparse.name") header.name = value;
  if (key == "linkpath") header.target = value;
  if (key == "size") header.stored = number();
  if (key == "size" && !header.sparse) header.size = header.stored;  // else GNU.sparse has it
  if (key == "uid") header.user = number();
  if (key == "gid") header.group = number();
  if (key == "mtime") header.modified = time_in(value);
  if (key == "GNU.sparse.major") header.sparse = true;
  if (key == "GNU.sparse.realsize") header.size = number();
  if (key.starts_with(kAttribute))
    header.attributes.emplace_back(unescape(key.substr(kAttribute.size())), value);
}

bool take_records(std::string_view text, Header& header) {
  while (const auto record = records::next_pax_record(text))
    take(record->key, record->value, header);
  return text.empty();
}

void take_block(const Block& block, Header& header) {
  header.name = text_in(block.name);
  header.target = text_in(block.target);
  header.type = static_cast<Type>(block.type);
  header.mode = static_cast<std::uint32_t>(number_in(block.mode));
  header.user = number_in(block.user);
  header.group = number_in(block.group);
  header.stored = header.size = number_in(block.size);
  header.modified =
      static_cast<std::int64_t>(std::min<std::uint64_t>(number_in(block.modified), kLatest)) *
      kSecond;
  header.major = static_cast<std::uint32_t>(number_in(block.major));
  header.minor = static_cast<std::uint32_t>(number_in(block.minor));
}

bool read_block(std::string_view text, Block& block) {
  if (text.size() < kBlock) return false;
  std::memcpy(&block, text.data(), kBlock);
  return records::has_right_checksum(block);
}

/// Parses the decimal number before the next line end, and removes both from `text`.
bool next_number(std::string_view& text, std::uint64_t& number) {
  const char *const begin = std::to_address(text.begin()), *const end = std::to_address(text.end());
  const char* at = std::from_chars(begin, end, number).ptr;
  if (at == begin || at == end || *at != '\n') return false;
  text.remove_prefix(static_cast<std::size_t>(at - begin) + 1);
  return true;
}

}  // namespace

std::string text_of(const Header& header) {
  Block block{};
  put(block.name, header.sparse ? std::string_view("GNUSparseFile.0/" + header.name)
                                : std::string_view(header.name));
  put(block.mode, header.mode);
  put(block.user, header.user);
  put(block.group, header.group);
  put(block.size, header.stored);
  put(block.modified,
      header.modified < 0 ? 0 : static_cast<std::uint64_t>(header.modified / kSecond));
  put(block.target, header.target);
  put(block.major, header.major);
  put(block.minor, header.minor);
  block.type = static_cast<char>(header.type);
  seal(block);
  const std::string records = records_of(header);
  return records.empty() ? as_text(block) : with_header(records, header) + as_text(block);
}

std::size_t parse(std::string_view text, Header& header) {
  Block block{};
  if (!read_block(text, block)) return 0;
  if (block.type != 'x') {
    take_block(block, header);
    return kBlock;
  }
  const std::uint64_t size = number_in(block.size);
  const std::uint64_t second = kBlock + base::round_up(size, kBlock);
  if (size > text.size() || second > text.size() || !read_block(text.substr(second), block))
    return 0;
  take_block(block, header);
  return take_records(text.substr(kBlock, size), header) ? second + kBlock : 0;
}

std::string map_of(std::span<const base::Extent> data, std::uint64_t size) {
  const bool hole_last =
      data.empty() || data.back().end < size;  // an empty piece marks the end of the file
  std::string out = std::to_string(data.size() + (hole_last ? 1 : 0)) + "\n";
  for (const base::Extent& piece : data)
    out += std::to_string(piece.begin) + "\n" + std::to_string(piece.length()) + "\n";
  if (hole_last) out += std::to_string(size) + "\n0\n";
  fill_up(out);
  return out;
}

std::size_t parse_map(std::string_view text, std::vector<base::Extent>& data) {
  std::string_view left = text;
  std::uint64_t pieces = 0, begin = 0, length = 0;
  if (!next_number(left, pieces) || pieces > kMostPieces) return 0;
  for (std::uint64_t i = 0; i < pieces; ++i) {
    if (!next_number(left, begin) || !next_number(left, length)) return 0;
    if (length > std::numeric_limits<std::uint64_t>::max() - begin) return 0;
    if (length > 0) data.push_back(base::Extent::at(begin, length));
  }
  return base::round_up(text.size() - left.size(), kBlock);
}

}  // namespace pario::archive
