// Heap-free text: a buffer of fixed size, and a JSON writer on top of it.
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace pario::base {

/// Appends text to memory of the caller. Drops a text that does not fit; `complete()` is false from
/// then on.
class TextBuffer {
 public:
  TextBuffer(char* data, std::size_t capacity) : data_(data), capacity_(capacity) {}

  TextBuffer& add(std::string_view text) {
    if (text.size() > capacity_ - size_) {
      complete_ = false;
      return *this;
    }
    if (!text.empty()) std::memcpy(data_ + size_, text.data(), text.size());
    size_ += text.size();
    return *this;
  }
  TextBuffer& add(char c) { return add(std::string_view(&c, 1)); }
  template <std::integral T>
    requires(!std::same_as<T, char> && !std::same_as<T, bool>)
  TextBuffer& add(T number, int base = 10) {
    char digits[72];
    const auto end = std::to_chars(digits, digits + sizeof digits, number, base).ptr;
    return add(std::string_view(digits, static_cast<std::size_t>(end - digits)));
  }

  std::string_view view() const { return {data_, size_}; }
  bool complete() const { return complete_; }
  /// Returns the text terminated by zero; drops the last character of a full buffer.
  const char* c_str();

 private:
  char* data_;
  std::size_t capacity_;
  std::size_t size_ = 0;
  bool complete_ = true;
};

/// A TextBuffer with its memory.
template <std::size_t N>
class Text : public TextBuffer {
 public:
  Text() : TextBuffer(memory_, N) {}
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;

 private:
  char memory_[N];
};

/// Appends `text` as a JSON string. Bytes that are not UTF-8 become lone surrogates U+DC80 to
/// U+DCFF, like Python's surrogateescape: every path is preserved.
void add_json_string(TextBuffer& out, std::string_view text);

/// Writes one JSON value, member by member, with commas. Close containers with end_object and
/// end_array.
class Json {
 public:
  explicit Json(TextBuffer& out) : out_(out) {}

  Json& begin_object() { return open('{'); }
  Json& end_object() { return close('}'); }
  Json& begin_array() { return open('['); }
  Json& end_array() { return close(']'); }
  std::string_view view() const { return out_.view(); }
  Json& key(std::string_view name);
  Json& value(std::string_view text);
  Json& value(const char* text) { return value(std::string_view(text)); }
  Json& value(bool truth);
  template <std::integral T>
    requires(!std::same_as<T, bool> && !std::same_as<T, char>)
  Json& value(T number) {
    separate();
    out_.add(number);
    return *this;
  }
  template <class T>
  Json& member(std::string_view name, T content) {
    return key(name).value(content);
  }

 private:
  Json& open(char bracket);
  Json& close(char bracket);
  void separate();

  TextBuffer& out_;
  bool comma_ = false;  // a value was written in this container
};

}  // namespace pario::base
