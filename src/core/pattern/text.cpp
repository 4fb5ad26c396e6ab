#include <cerrno>
#include <charconv>
#include <optional>

#include "core/pattern/node.hpp"

namespace pario::pattern {

using detail::Inside;
using detail::Node;

namespace {

constexpr int kDeepest = 200;

/// Prints the text of a layout, and stops soon after `limit` characters.
struct Printer {
  std::size_t limit;
  std::string out = {};

  void print(const Node& node, std::int64_t first) {
    if (!node.displacements.empty()) return print_list(node, first);
    if (first != 0) {
      out += '[';
      print_part(first, &node, node.size);
      out += ']';
    } else if (node.is_block()) {
      out += std::to_string(node.size);
    } else {
      print_repeat(node);
    }
  }

 private:
  void print_part(std::int64_t displacement, const Node* part, std::uint64_t size) {
    if (out.back() != '[') out += ' ';
    out += std::to_string(displacement) + ":";
    if (part != nullptr) {
      print(*part, 0);
    } else {
      out += std::to_string(size);
    }
  }

  void print_repeat(const Node& node) {
    const bool plain = node.child->kind != Node::Kind::repeat;
    out += std::to_string(node.count) + (plain ? "x" : "x(");
    print(*node.child, 0);
    out += (plain ? "/" : ")/") + std::to_string(node.stride);
  }

  void print_list(const Node& node, std::int64_t first) {
    out += '[';
    for (std::uint64_t i = 0; i < node.count && out.size() <= limit; ++i)
      print_part(detail::plus(first, node.displacements[i]), node.part(i), node.part_size(i));
    out += ']';
  }
};

/// A recursive-descent parser with one function per rule. A failed rule records position and
/// expectation, and all rules return.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  base::Result<TypeMap> parse() {
    std::optional<TypeMap> layout = parse_layout();
    if (layout && at_ < text_.size()) layout = fail("the end");
    if (layout) return *std::move(layout);
    return base::Error{.number = EINVAL, .operation = "parse layout", .detail = complaint()};
  }

 private:
  std::string complaint() const {
    const std::string found =
        at_ < text_.size() ? "'" + std::string(1, text_[at_]) + "'" : "the end";
    return "\"" + std::string(text_) + "\", character " + std::to_string(at_ + 1) + ": expected " +
           expected_ + ", found " + found;
  }
  std::nullopt_t fail(const char* expected) {
    if (expected_ == nullptr) expected_ = expected;
    return std::nullopt;
  }
  std::nullopt_t fail_at(std::size_t at, const char* expected) {
    at_ = at;
    return fail(expected);
  }
  bool is(char c) const { return at_ < text_.size() && text_[at_] == c; }
  bool take(char c) {
    if (!is(c)) return false;
    ++at_;
    return true;
  }
  void spaces() {
    while (take(' ')) {
    }
  }
  template <class T>
  bool number(T& value, const char* expected) {
    const auto [end, error] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc{}) {
      fail(error == std::errc::result_out_of_range ? "a smaller number" : expected);
      return false;
    }
    at_ = static_cast<std::size_t>(end - text_.data());
    return true;
  }

  // layout := body ["@" lower "+" extent]
  std::optional<TypeMap> parse_layout() {
    if (++depth_ > kDeepest) return fail("less nesting");
    std::optional<TypeMap> body = parse_body();
    --depth_;
    if (!body || !take('@')) return body;
    std::int64_t lower = 0, extent = 0;
    if (!number(lower, "a lower bound")) return std::nullopt;
    if (!take('+')) return fail("'+' and an extent");
    if (!number(extent, "an extent")) return std::nullopt;
    return body->with_extent(lower, extent);
  }

  // body := "[" parts "]" | "(" layout ")" | size | count "x" item "/" stride
  std::optional<TypeMap> parse_body() {
    if (is('[') || is('(')) return parse_item();
    const std::size_t start = at_;
    std::uint64_t count = 0;
    if (!number(count, "a number, '[' or '('")) return std::nullopt;
    if (is('x')) return parse_repeat(count, start);
    return block(count, start);
  }

  std::optional<TypeMap> block(std::uint64_t size, std::size_t start) {
    if (size > static_cast<std::uint64_t>(INT64_MAX)) return fail_at(start, "a smaller number");
    return size == 0 ? TypeMap() : TypeMap::block(size);
  }

  // item := "[" parts "]" | "(" layout ")" | size
  std::optional<TypeMap> parse_item() {
    if (take('[')) return parse_parts();
    if (take('(')) {
      std::optional<TypeMap> inner = parse_layout();
      if (inner && !take(')')) return fail("')'");
      return inner;
    }
    const std::size_t start = at_;
    std::uint64_t size = 0;
    if (!number(size, "a size, '[' or '('")) return std::nullopt;
    return block(size, start);
  }

  std::optional<TypeMap> parse_repeat(std::uint64_t count, std::size_t start) {
    take('x');
    std::optional<TypeMap> item = parse_item();
    if (!item) return item;
    if (!take('/')) return fail("'/' and a stride");
    std::int64_t stride = 0;
    if (!number(stride, "a stride")) return std::nullopt;
    if (too_far(*item, count, stride)) return fail_at(start, "a layout of less than 2^63 bytes");
    return TypeMap::repeat(*item, count, stride);
  }

  static bool too_far(const TypeMap& item, std::uint64_t count, std::int64_t stride) {
    std::int64_t all = 0;
    if (__builtin_mul_overflow(item.size(), count, &all)) return true;
    return count > 1 && (__builtin_mul_overflow(stride, count - 1, &all) ||
                         __builtin_add_overflow(item.lower(), all, &all) ||
                         __builtin_add_overflow(item.extent(), all, &all));
  }

  // parts := (displacement ":" layout)*
  std::optional<TypeMap> parse_parts() {
    std::vector<std::pair<std::int64_t, TypeMap>> parts;
    for (spaces(); !take(']'); spaces()) {
      std::int64_t displacement = 0;
      if (!number(displacement, "a displacement or ']'")) return std::nullopt;
      if (!take(':')) return fail("':' and a layout");
      std::optional<TypeMap> part = parse_layout();
      if (!part) return part;
      if (!is(' ') && !is(']')) return fail("' ' or ']'");
      parts.emplace_back(displacement, *std::move(part));
    }
    return TypeMap::sequence(parts);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  const char* expected_ = nullptr;
};

}  // namespace

std::string TypeMap::text(std::size_t limit) const {
  Printer printer{.limit = limit};
  std::string& out = printer.out;
  if (node_) {
    printer.print(*node_, first_);
  } else {
    out = "0";
  }
  if (lower_ != true_lower() || extent_ != true_extent())
    out += "@" + std::to_string(lower_) + "+" + std::to_string(extent_);
  return out.size() <= limit ? out : std::string();
}

base::Result<TypeMap> TypeMap::parse(std::string_view text) { return Parser(text).parse(); }

}  // namespace pario::pattern
