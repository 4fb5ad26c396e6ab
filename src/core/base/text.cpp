#include "core/base/text.hpp"

namespace pario::base {

const char* TextBuffer::c_str() {
  if (size_ == capacity_) --size_;
  data_[size_] = 0;
  return data_;
}

namespace {

bool continues(std::string_view text, std::size_t i) {
  return i < text.size() && (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80;
}

/// A range of first bytes of UTF-8 sequences, the range of their second byte, and their length
/// (Unicode standard, well-formed sequences).
struct Lead {
  unsigned char first, last, second_first, second_last;
  std::size_t length;
};
constexpr Lead kLeads[] = {{0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
                           {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3},
                           {0xEE, 0xEF, 0x80, 0xBF, 3}, {0xF0, 0xF0, 0x90, 0xBF, 4},
                           {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4}};

bool begins(const Lead& lead, unsigned char first, unsigned char second) {
  return first >= lead.first && first <= lead.last && second >= lead.second_first &&
         second <= lead.second_last;
}

/// Returns the length of the well-formed UTF-8 sequence of two or more bytes at `i`, 0 if there is
/// none.
std::size_t utf8_length(std::string_view text, std::size_t i) {
  if (i + 1 >= text.size()) return 0;
  const auto first = static_cast<unsigned char>(text[i]),
             second = static_cast<unsigned char>(text[i + 1]);
  for (const Lead& lead : kLeads) {
    if (!begins(lead, first, second)) continue;
    for (std::size_t k = 2; k < lead.length; ++k)
      if (!continues(text, i + k)) return 0;
    return lead.length;
  }
  return 0;
}

void add_escape(TextBuffer& out, unsigned code) {
  constexpr char kDigits[] = "0123456789abcdef";
  const char text[] = {'\\',
                       'u',
                       kDigits[code >> 12 & 15],
                       kDigits[code >> 8 & 15],
                       kDigits[code >> 4 & 15],
                       kDigits[code & 15]};
  out.add(std::string_view(text, sizeof text));
}

/// Returns the length of the run of characters at `i` that JSON needs no escape for.
std::size_t plain_length(std::string_view text, std::size_t i) {
  const auto is_plain = [](unsigned char c) {
    return c >= 0x20 && c < 0x7F && c != '"' && c != '\\';
  };
  std::size_t end = i;
  while (end < text.size() && is_plain(static_cast<unsigned char>(text[end]))) ++end;
  return end - i;
}

/// Appends any other character; returns its number of bytes in `text`.
std::size_t add_special(TextBuffer& out, std::string_view text, std::size_t i) {
  const auto c = static_cast<unsigned char>(text[i]);
  const std::size_t length = c < 0x80 ? 1 : utf8_length(text, i);
  if (length == 0)
    add_escape(out, 0xDC00u + c);
  else if (length > 1)
    out.add(text.substr(i, length));
  else if (c < 0x20 || c == 0x7F)
    add_escape(out, c);
  else
    out.add('\\').add(text[i]);
  return length == 0 ? 1 : length;
}

}  // namespace

void add_json_string(TextBuffer& out, std::string_view text) {
  out.add('"');
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t plain = plain_length(text, i);
    out.add(text.substr(i, plain));
    i += plain;
    if (i < text.size()) i += add_special(out, text, i);
  }
  out.add('"');
}

void Json::separate() {
  if (comma_) out_.add(',');
  comma_ = true;
}

Json& Json::open(char bracket) {
  separate();
  out_.add(bracket);
  comma_ = false;
  return *this;
}

Json& Json::close(char bracket) {
  out_.add(bracket);
  comma_ = true;
  return *this;
}

Json& Json::key(std::string_view name) {
  separate();
  add_json_string(out_, name);
  out_.add(':');
  comma_ = false;
  return *this;
}

Json& Json::value(std::string_view text) {
  separate();
  add_json_string(out_, text);
  return *this;
}

Json& Json::value(bool truth) {
  separate();
  out_.add(truth ? "true" : "false");
  return *this;
}

}  // namespace pario::base
