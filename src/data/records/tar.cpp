// WebDataset: consecutive members of a tar file are one record if their names are equal up to the
// first dot of the last part.
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <iterator>

#include "data/records/formats.hpp"

namespace pario::records {
namespace {

constexpr std::uint64_t kLongestName = 1 << 16;

const TarBlock& block_of(std::span<const std::byte> header) {
  return *reinterpret_cast<const TarBlock*>(header.data());
}

bool is_header(std::span<const std::byte> header) { return has_right_checksum(block_of(header)); }

/// The name in the header itself; a longer one has a header of its own.
std::string name_of(const TarBlock& block) {
  const std::string_view prefix =
      std::memcmp(block.magic, "ustar", sizeof block.magic) == 0 ? text_in(block.prefix) : "";
  return std::string(prefix) + (prefix.empty() ? "" : "/") + std::string(text_in(block.name));
}

bool all_zero(std::span<const std::byte> header) {
  for (const std::byte byte : header)
    if (byte != std::byte{0}) return false;
  return true;
}

/// True if the member of a damaged header has no bytes: by its size, or because its checksum is
/// that of the same header with the size 0.
bool is_empty(const TarBlock& block) {
  if (number_in(block.size) == 0) return true;
  TarBlock other = block;
  std::ranges::fill(other.size, '0');
  for (const char end : {'\0', ' '}) {
    *std::rbegin(other.size) = end;
    if (has_right_checksum(other)) return true;
  }
  return false;
}

/// The value of a key in a pax header ("27 path=a/b.jpg\n" and so on); empty if it is missing.
std::string_view pax_value(std::string_view records, std::string_view key) {
  while (const auto record = next_pax_record(records))
    if (record->key == key) return record->value;
  return {};
}

std::optional<std::uint64_t> pax_size(std::string_view records) {
  const std::string_view text = pax_value(records, "size");
  std::uint64_t size = 0;
  const bool right =
      !text.empty() &&
      std::from_chars(text.data(), text.data() + text.size(), size).ec == std::errc{};
  return right ? std::optional(size) : std::nullopt;
}

class SampleSearch {
 public:
  SampleSearch(const Search& search, IndexBuilder& out)
      : search_(search), out_(out), window_(search) {}

  /// Processes the header at `at`; returns the offset of the next one, or `at` at the end of the
  /// members. EBADMSG: it is damaged.
  base::Result<std::uint64_t> end_of(std::uint64_t at) {
    const auto header = window_.at(at, kTarBlock);
    if (!header.ok()) return header.error();
    if (header->size() < kTarBlock) return wrong(at, "the tar file is cut off");
    if (all_zero(*header)) return at;
    if (!is_header(*header))
      return wrong(at, "no member of a tar file begins here: wrong checksum of a header");
    base::Result<std::uint64_t> next = take(at, block_of(*header));
    if (next.ok() && *next > search_.where.end) return wrong(at, "the tar file is cut off");
    return next;
  }

  /// Continues behind a damaged header; `error` is the damage. The bytes up to the next header
  /// belong to a record with this header, so that its readers find the damage.
  base::Result<std::uint64_t> pass_damage(std::uint64_t at, const base::Error& error) {
    const auto header = window_.at(at, kTarBlock);
    if (!header.ok()) return header.error();
    base::Result<std::uint64_t> next = search_.where.end;
    if (header->size() == kTarBlock && !is_header(*header)) {
      const std::uint64_t size = number_in(block_of(*header).size);
      const bool empty = is_empty(block_of(*header));
      lose(at, block_of(*header));
      next = find_header(at, size, empty);
    }
    const bool none = next.ok() && *next == search_.where.end && !any_;
    return none ? base::Result<std::uint64_t>(error) : next;
  }

 private:
  /// A member whose header is damaged, between the last and the next whole one.
  struct Lost {
    std::uint64_t begin;
    std::string key;  ///< by its name, which may be damaged too
    bool extension;   ///< the next member has lost its long name
  };

  base::Error wrong(std::uint64_t offset, const char* what, int number = EBADMSG) const {
    return damage_in(search_, "index tar", offset, what, number);
  }

  /// Notes a damaged header that may belong to another record than the members before it.
  void lose(std::uint64_t at, const TarBlock& block) {
    const std::string name = name_.empty() ? name_of(block) : name_;
    const bool extension =
        block.type == 'x' || block.type == 'L' || name.find("PaxHeader") != std::string::npos;
    const std::string key(extension ? "" : sample_key(name));
    if (lost_) {
      *lost_ = {lost_->begin, lost_->key == key ? key : "", extension};
    } else if (!any_ || key != key_) {
      lost_ = {begun_.value_or(at), key, extension};
    }
    forget_extensions();
  }

  /// The next header behind the one at `at`, whose member has about `size` bytes, or is `empty`;
  /// the end of the search if there is none.
  base::Result<std::uint64_t> find_header(std::uint64_t at, std::uint64_t size, bool empty) {
    if (size < search_.where.end - at) {
      const std::uint64_t guess = at + kTarBlock + base::round_up(size, kTarBlock);
      const base::Result<bool> right = has_header(guess);
      if (!right.ok()) return right.error();
      if (*right) return guess;
    }
    return search_content(at + kTarBlock, empty);
  }

  /// True if a header begins at `at` that is not one of a tar file inside this one.
  base::Result<bool> has_header(std::uint64_t at) {
    const auto header = window_.at(at, kTarBlock);
    if (!header.ok()) return header.error();
    if (header->size() < kTarBlock || !is_header(*header)) return false;
    const base::Result<std::uint64_t> next = behind_inner_archive(at, at);
    return next.ok() ? base::Result<bool>(*next == at) : next.error();
  }

  /// Searches the blocks from `content` on, behind a damaged header whose member may be `empty`.
  /// Returns the next header, or the end of the search if there is none.
  base::Result<std::uint64_t> search_content(std::uint64_t content, bool empty) {
    for (std::uint64_t at = content; at < search_.where.end && !search_.meter.is_stopped();) {
      const auto header = window_.at(at, kTarBlock);
      if (!header.ok()) return header.error();
      if (header->size() < kTarBlock) break;
      if (!is_header(*header)) {
        at += kTarBlock;
        continue;
      }
      // The last member, if its content begins with the headers up to the end of the file.
      const std::uint64_t end = at == content && !empty ? search_.where.end : at;
      const base::Result<std::uint64_t> next = behind_inner_archive(at, end);
      if (!next.ok() || *next == at) return next;
      at = *next;
    }
    return search_.where.end;
  }

  /// If the headers from `begin` on are those of a tar file that is a member of this one, since
  /// zeros end it and a header follows: the offset of that header. `at_end` if they are followed by
  /// no other header up to the end of the search. Otherwise `begin`.
  base::Result<std::uint64_t> behind_inner_archive(std::uint64_t begin, std::uint64_t at_end) {
    bool ended = false;  // zeros were passed
    for (std::uint64_t at = begin; at < search_.where.end && !search_.meter.is_stopped();) {
      const auto header = window_.at(at, kTarBlock);
      if (!header.ok()) return header.error();
      if (header->size() < kTarBlock) break;
      if (all_zero(*header)) {
        ended = true;
        at += kTarBlock;
        continue;
      }
      if (!is_header(*header)) return begin;
      if (ended) return at;
      const std::uint64_t size = number_in(block_of(*header).size);
      at += kTarBlock + base::round_up(std::min(size, kLargestNumber), kTarBlock);
    }
    return at_end;
  }

  /// Processes a valid header; returns the offset of the next one.
  base::Result<std::uint64_t> take(std::uint64_t at, const TarBlock& block) {
    const char type = block.type;
    std::uint64_t size = number_in(block.size);
    if (size >= kLargestNumber || type == 'S')
      return wrong(at, "sparse members and sizes beyond all measure cannot be indexed", EINVAL);
    if (type == 'L' || type == 'x') {
      if (base::Status status = take_extension(at, type, size); !status) return status.error();
    } else if (type != 'g' && type != 'K') {
      if (own_size_) size = *own_size_;
      if (type == '0' || type == '\0' || type == '7') take_member(at, block);
      forget_extensions();
    }
    return at + kTarBlock + base::round_up(size, kTarBlock);
  }

  /// Reads a long name or a size for the next member.
  base::Status take_extension(std::uint64_t at, char type, std::uint64_t size) {
    if (!begun_) begun_ = at;
    const auto bytes = window_.at(at + kTarBlock, std::min(size, kLongestName));
    if (!bytes.ok()) return bytes.error();
    const std::string_view records(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    if (type == 'L') {
      name_ = records.substr(0, records.find('\0'));
      return {};
    }
    if (const std::string_view path = pax_value(records, "path"); !path.empty()) name_ = path;
    if (const auto own = pax_size(records)) own_size_ = own;
    return {};
  }

  void take_member(std::uint64_t at, const TarBlock& block) {
    if (lost_ && lost_->extension) {
      lost_->extension = false;
      return;
    }
    if (name_.empty()) name_ = name_of(block);
    const std::string_view key = sample_key(name_);
    if (key.empty()) return;
    if (const auto begin = begin_of(at, key)) out_.begin(*begin);
    any_ = true;
    key_ = key;
    lost_.reset();
  }

  /// The begin of the record of a member; nullopt: it belongs to the record before. A lost member
  /// belongs to the neighbour with its name. If none has it, any of them may lack a member: they
  /// become one damaged record.
  std::optional<std::uint64_t> begin_of(std::uint64_t at, std::string_view key) const {
    if (!any_) return search_.where.begin;
    if (key == key_) return std::nullopt;
    if (!lost_) return begun_.value_or(at);
    return lost_->key == key ? std::optional(lost_->begin) : std::nullopt;
  }

  void forget_extensions() {
    name_.clear();
    own_size_.reset();
    begun_.reset();
  }

  const Search& search_;
  IndexBuilder& out_;
  Window window_;
  bool any_ = false;
  std::string key_, name_;
  std::optional<Lost> lost_;
  std::optional<std::uint64_t> own_size_,
      begun_;  ///< of the member whose extensions are being read
};

/// Writes octal digits and a zero, or a binary number if the field is too short.
void put_number(std::span<char> field, std::uint64_t value) {
  const bool binary = value >> 3 * (field.size() - 1) != 0;
  std::size_t i = binary ? field.size() : field.size() - 1;
  for (; i > 0; value >>= binary ? 8 : 3)
    field[--i] = static_cast<char>(binary ? value & 0xFF : '0' + (value & 7));
  if (binary) field[0] = static_cast<char>(field[0] | 0x80);
}

void put_header(std::vector<std::byte>& out, const TarMember& member, char type) {
  TarBlock block{};
  std::memcpy(block.name, member.name.data(), std::min(member.name.size(), sizeof block.name));
  put_number(block.mode, member.mode);
  put_number(block.user, 0);
  put_number(block.group, 0);
  put_number(block.size, member.size);
  put_number(block.modified, member.modified);
  block.type = type;
  std::memcpy(block.magic, "ustar", sizeof block.magic);
  std::memset(block.version, '0', sizeof block.version);
  put_number(std::span(block.sum).first(7), checksum_of(block));
  block.sum[7] = ' ';
  const auto bytes = std::as_bytes(std::span(&block, 1));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

}  // namespace

std::string_view sample_key(std::string_view name) {
  const std::size_t slash = name.rfind('/'), last = slash == std::string_view::npos ? 0 : slash + 1;
  const std::size_t dot = name.find('.', last);
  return dot == std::string_view::npos || dot == last ? std::string_view{} : name.substr(0, dot);
}

const char* TarCheck::damage() const {
  if (damaged_) return "wrong checksum of a header";
  return over_ || next_ == done_ ? nullptr : "the tar file is cut off";
}

void TarCheck::add(std::span<const std::byte> piece) {
  const std::uint64_t end = done_ + piece.size();
  while (!over_ && next_ + kTarBlock <= end) {
    const auto rest = piece.subspan(next_ - done_);
    take(rest.first(kTarBlock), rest.subspan(kTarBlock));
  }
  done_ = end;
}

/// Checks a header. `behind`: the available bytes after it.
void TarCheck::take(std::span<const std::byte> header, std::span<const std::byte> behind) {
  damaged_ = !all_zero(header) && !is_header(header);
  const char type = block_of(header).type;
  std::uint64_t size = number_in(block_of(header).size);
  const bool extended = type == 'x', other = type == 'g' || type == 'L' || type == 'K';
  over_ =
      damaged_ || all_zero(header) || size >= kLargestNumber || (extended && size > behind.size());
  if (over_) return;
  if (extended) {
    own_size_ = pax_size({reinterpret_cast<const char*>(behind.data()), size});
  } else if (!other) {
    size = own_size_.value_or(size);
    own_size_.reset();
  }
  next_ += kTarBlock + base::round_up(std::min(size, kLargestNumber), kTarBlock);
}

std::vector<std::byte> tar_head(const TarMember& member) {
  std::vector<std::byte> out;
  if (member.name.size() >
      sizeof(TarBlock::name)) {  // GNU tar: a member with the name of the next one
    put_header(out, {.name = "././@LongLink", .size = member.name.size() + 1}, 'L');
    const auto name = std::as_bytes(std::span(member.name));
    out.insert(out.end(), name.begin(), name.end());
    out.resize(base::round_up(out.size() + 1, kTarBlock));
  }
  put_header(out, member, '0');
  return out;
}

base::Result<std::uint64_t> find_samples(const Search& search, IndexBuilder& out) {
  SampleSearch samples(search, out);
  return walk_records(
      search, [&](std::uint64_t at) { return samples.end_of(at); },
      [&](std::uint64_t at, const base::Error& error) { return samples.pass_damage(at, error); });
}

}  // namespace pario::records
