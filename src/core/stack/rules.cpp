// Reads .eh_frame_hdr and .eh_frame, as in the Linux Standard Base and DWARF 5, section 6.4.
#include <cstring>
#include <optional>
#include <span>

#include "core/stack/unwind.hpp"

namespace pario::stack {
namespace {

/// Encodings of pointers (DW_EH_PE_*).
constexpr std::uint8_t kOmitted = 0xff, kFormat = 0x0f, kRelative = 0x70, kToPlace = 0x10,
                       kSortedTable = 0x3b;

/// Reads values in a range of memory; `has_failed()` after a value beyond its end.
class Cursor {
 public:
  Cursor(std::uint64_t at, std::uint64_t end) : at_(at), end_(end) {}

  template <class T>
  T read() {
    T value{};
    if (end_ - at_ < sizeof value || at_ > end_) {
      fail();
      return value;
    }
    std::memcpy(&value, reinterpret_cast<const void*>(at_), sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::uint64_t unsigned_leb() { return leb(false); }
  std::int64_t signed_leb() { return static_cast<std::int64_t>(leb(true)); }
  std::uint64_t pointer(std::uint8_t encoding) {
    if (encoding == kOmitted) return 0;
    const std::uint64_t place = at_;
    const std::uint64_t value = number(encoding);
    if ((encoding & kRelative) == 0) return value;
    if ((encoding & kRelative) != kToPlace) fail();
    return place + value;
  }
  /// Reads a number in the format of an encoding.
  std::uint64_t number(std::uint8_t encoding) {
    switch (encoding & kFormat) {
      case 0x00:
      case 0x04:
      case 0x0c:
        return read<std::uint64_t>();
      case 0x02:
        return read<std::uint16_t>();
      case 0x03:
        return read<std::uint32_t>();
      case 0x0a:
        return static_cast<std::uint64_t>(std::int64_t{read<std::int16_t>()});
      case 0x0b:
        return static_cast<std::uint64_t>(std::int64_t{read<std::int32_t>()});
      default:
        fail();
        return 0;
    }
  }
  void skip(std::uint64_t size) {
    if (size > end_ - at_)
      fail();
    else
      at_ += size;
  }
  /// Takes the next `size` bytes out as a range of their own; an empty one beyond the end.
  Cursor take(std::uint64_t size) {
    const std::uint64_t begin = at_;
    skip(size);
    return {failed_ ? at_ : begin, at_};
  }
  std::uint64_t at() const { return at_; }
  std::uint64_t end() const { return end_; }
  bool more() const { return at_ < end_; }
  bool has_failed() const { return failed_; }

 private:
  void fail() {
    failed_ = true;
    at_ = end_;
  }
  std::uint64_t leb(bool is_signed) {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = read<std::uint8_t>();
      value |= std::uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) != 0) continue;
      if (is_signed && (byte & 0x40) != 0 && shift + 7 < 64)
        value |= ~std::uint64_t{0} << (shift + 7);
      return value;
    }
    fail();
    return 0;
  }

  std::uint64_t at_, end_;
  bool failed_ = false;
};

/// Reads the size of an entry (CIE or FDE) and returns its other bytes; nullopt if the size is 0,
/// of 64 bits, or too large.
std::optional<Cursor> open_entry(std::uint64_t place, const Range& range) {
  Cursor in(place, range.end);
  const auto size = in.read<std::uint32_t>();
  if (size == 0 || size == ~0u || !range.contains(in.at(), size)) return std::nullopt;
  return in.take(size);
}

/// The common part of the rules of several functions (CIE).
struct Common {
  std::uint64_t code_factor = 1;
  std::int64_t data_factor = 1;
  std::uint8_t encoding = 0;
  bool has_augmentation = false;
  std::uint64_t begin = 0, end = 0;  ///< its instructions
};

/// Reads a string with its zero; false if it does not fit into `text`.
bool read_string(Cursor& in, std::span<char> text) {
  for (char& letter : text)
    if ((letter = in.read<char>()) == 0) return true;
  return false;
}

/// Reads the optional data that the letters of an augmentation describe. False: damaged, or without
/// a size and not known.
bool read_augmentation(Cursor& in, const char* letters, Common& common) {
  common.has_augmentation = letters[0] == 'z';
  if (!common.has_augmentation) return letters[0] == 0;
  Cursor data = in.take(in.unsigned_leb());
  for (const char* letter = letters + 1; *letter != 0; ++letter) {
    if (*letter == 'R') common.encoding = data.read<std::uint8_t>();
    if (*letter == 'L') data.read<std::uint8_t>();
    if (*letter == 'P') data.number(data.read<std::uint8_t>());
  }
  return !data.has_failed();
}

bool read_common(std::uint64_t place, const Range& range, Common& common) {
  const std::optional<Cursor> entry = open_entry(place, range);
  if (!entry) return false;
  Cursor in = *entry;
  common.end = in.end();
  if (in.read<std::uint32_t>() != 0) return false;
  const auto version = in.read<std::uint8_t>();
  char augmentation[8] = {};
  if (!read_string(in, augmentation)) return false;
  common.code_factor = in.unsigned_leb();
  common.data_factor = in.signed_leb();
  const std::uint64_t column = version == 1 ? in.read<std::uint8_t>() : in.unsigned_leb();
  if (!read_augmentation(in, augmentation, common)) return false;
  common.begin = in.at();
  return !in.has_failed() && column == kReturnRegister;
}

/// Executes the instructions of a table up to an address.
class Machine {
 public:
  Machine(const Common& common, Rules& rules) : common_(common), rules_(rules) {}

  /// False if an instruction is not known.
  bool run(std::uint64_t begin, std::uint64_t end, std::uint64_t start, std::uint64_t address) {
    Cursor in(begin, end);
    place_ = start;
    while (in.more()) {
      if (!step(in)) return false;
      if (place_ > address) return true;
    }
    return !in.has_failed();
  }
  void keep_initial() { initial_ = rules_; }

 private:
  static constexpr std::size_t kDepth = 8;

  bool step(Cursor& in) {
    const auto code = in.read<std::uint8_t>();
    const std::uint64_t low = code & 0x3f;
    switch (code >> 6) {
      case 1:
        advance(low);
        return true;
      case 2:
        set(low, Rule::Kind::at_cfa, scale(in.unsigned_leb()));
        return true;
      case 3:
        restore(low);
        return true;
      default:
        return step_extended(code, in);
    }
  }

  bool step_extended(std::uint8_t code, Cursor& in) {
    switch (code) {
      case 0x00:
        return true;
      case 0x01:
        advance_to(in.pointer(common_.encoding));
        return true;
      case 0x02:
        advance(in.read<std::uint8_t>());
        return true;
      case 0x03:
        advance(in.read<std::uint16_t>());
        return true;
      case 0x04:
        advance(in.read<std::uint32_t>());
        return true;
      case 0x0a:
        return push();
      case 0x0b:
        return pop();
      case 0x2e:
        in.unsigned_leb();
        return true;  // size of pushed arguments
      case 0x0c:
      case 0x0d:
      case 0x0e:
      case 0x0f:
      case 0x12:
      case 0x13:
        return define(code, in);
      default:
        return set_rule(code, in);
    }
  }

  /// Defines the canonical frame address.
  bool define(std::uint8_t code, Cursor& in) {
    if (code == 0x0f) return define_by_expression(in);
    if (code == 0x0c || code == 0x0d || code == 0x12) rules_.base = in.unsigned_leb();
    if (code == 0x0c || code == 0x0e) rules_.offset = static_cast<std::int64_t>(in.unsigned_leb());
    if (code == 0x12 || code == 0x13)
      rules_.offset = scale(static_cast<std::uint64_t>(in.signed_leb()));
    rules_.indirect = false;
    rules_.known = rules_.base == kStackRegister || rules_.base == kFrameRegister;
    return true;
  }

  /// Functions that align their stack keep the address in a word below the frame register.
  bool define_by_expression(Cursor& in) {
    constexpr std::uint8_t kAtFrameRegister = 0x76, kDereference = 0x06;
    Cursor inside = in.take(in.unsigned_leb());
    rules_.known = inside.read<std::uint8_t>() == kAtFrameRegister;
    rules_.base = kFrameRegister;
    rules_.offset = inside.signed_leb();
    rules_.indirect = true;
    rules_.known &=
        inside.read<std::uint8_t>() == kDereference && !inside.more() && !in.has_failed();
    return !in.has_failed();
  }

  bool set_rule(std::uint8_t code, Cursor& in) {
    const std::uint64_t number = in.unsigned_leb();
    switch (code) {
      case 0x05:
        set(number, Rule::Kind::at_cfa, scale(in.unsigned_leb()));
        return true;
      case 0x11:
        set(number, Rule::Kind::at_cfa, scale(static_cast<std::uint64_t>(in.signed_leb())));
        return true;
      case 0x06:
        restore(number);
        return true;
      case 0x07:
        set(number, Rule::Kind::unknown, 0);
        return true;
      case 0x08:
        set(number, Rule::Kind::unchanged, 0);
        return true;
      case 0x10:
        return set_by_expression(number, in);
      case 0x09:
      case 0x14:
        in.unsigned_leb();
        break;
      case 0x15:
        in.signed_leb();
        break;
      case 0x16:
        in.skip(in.unsigned_leb());
        break;
      default:
        return false;
    }
    set(number, Rule::Kind::unknown, 0);
    return true;
  }

  bool set_by_expression(std::uint64_t number, Cursor& in) {
    constexpr std::uint8_t kAtFrameRegister = 0x76;
    Cursor inside = in.take(in.unsigned_leb());
    const bool simple = inside.read<std::uint8_t>() == kAtFrameRegister;
    const std::int64_t offset = inside.signed_leb();
    set(number, simple && !inside.more() ? Rule::Kind::at_frame : Rule::Kind::unknown, offset);
    return !in.has_failed();
  }

  /// Multiplies by the factor of offsets, modulo 2^64: damaged tables overflow.
  std::int64_t scale(std::uint64_t offset) const {
    return static_cast<std::int64_t>(offset * static_cast<std::uint64_t>(common_.data_factor));
  }
  void advance(std::uint64_t steps) { place_ += steps * common_.code_factor; }
  void advance_to(std::uint64_t place) { place_ = place; }

  static Rule* find(Rules& rules, std::uint64_t number) {
    return number == kFrameRegister    ? &rules.frame
           : number == kReturnRegister ? &rules.address
                                       : nullptr;
  }
  void set(std::uint64_t number, Rule::Kind kind, std::int64_t offset) {
    if (Rule* rule = find(rules_, number)) *rule = {kind, offset};
  }
  void restore(std::uint64_t number) {
    if (Rule* rule = find(rules_, number)) *rule = *find(initial_, number);
  }
  bool push() {
    if (depth_ == kDepth) return false;
    kept_[depth_++] = rules_;
    return true;
  }
  bool pop() {
    if (depth_ == 0) return false;
    rules_ = kept_[--depth_];
    return true;
  }

  const Common& common_;
  Rules& rules_;
  Rules initial_{};
  Rules kept_[kDepth];
  std::size_t depth_ = 0;
  std::uint64_t place_ = 0;
};

/// Returns the place of the description (FDE) of the function that may contain the address; 0:
/// none.
std::uint64_t search_table(const Object& object, std::uint64_t address) {
  const auto table = reinterpret_cast<std::uint64_t>(object.unwind_table);
  Cursor in(table, object.range.end);
  if (table < object.range.begin || in.read<std::uint8_t>() != 1) return 0;
  const auto pointer = in.read<std::uint8_t>(), count = in.read<std::uint8_t>(),
             sorted = in.read<std::uint8_t>();
  in.pointer(pointer);
  const std::uint64_t rows = in.number(count);
  if (sorted != kSortedTable || in.has_failed() || rows > (object.range.end - in.at()) / 8)
    return 0;
  const auto distance_at = [first = in.at()](std::uint64_t number) {
    std::int32_t distance = 0;  // of a table that may be misaligned
    std::memcpy(&distance, reinterpret_cast<const void*>(first + 4 * number), sizeof distance);
    return std::int64_t{distance};
  };
  const auto wanted = static_cast<std::int64_t>(address - table);
  std::uint64_t low = 0, high = rows;
  while (low < high) {
    const std::uint64_t middle = (low + high) / 2;
    if (distance_at(2 * middle) <= wanted)
      low = middle + 1;
    else
      high = middle;
  }
  return low == 0 ? 0 : table + static_cast<std::uint64_t>(distance_at(2 * low - 1));
}

}  // namespace

bool find_rules(const Object& object, std::uint64_t address, Rules& rules,
                std::uint64_t& function) {
  if (object.unwind_table == nullptr) return false;
  const std::uint64_t place = search_table(object, address);
  if (place == 0 || !object.range.contains(place, 8)) return false;
  const std::optional<Cursor> entry = open_entry(place, object.range);
  if (!entry) return false;
  Cursor in = *entry;
  const std::uint64_t back = in.at();
  const auto distance = in.read<std::uint32_t>();
  Common common;
  if (distance == 0 || !object.range.contains(back - distance, 8) ||
      !read_common(back - distance, object.range, common))
    return false;
  function = in.pointer(common.encoding);
  const std::uint64_t length = in.number(common.encoding);
  if (in.has_failed() || address - function >= length) return false;
  if (common.has_augmentation) in.skip(in.unsigned_leb());
  Machine machine(common, rules);
  if (!machine.run(common.begin, common.end, function, ~std::uint64_t{0} - 1)) return false;
  machine.keep_initial();
  return machine.run(in.at(), in.end(), function, address) && rules.known;
}

}  // namespace pario::stack
