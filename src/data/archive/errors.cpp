#include "data/archive/errors.hpp"

namespace pario::archive {

std::string quote(std::string_view name) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out += '"';
  for (const char letter : name) {
    const auto code = static_cast<unsigned char>(letter);
    if (code < ' ' || code == 0x7F)
      for (const char part : {'\\', 'x', kDigits[code >> 4], kDigits[code & 15]}) out += part;
    else
      out += letter;
  }
  out += '"';
  return out;
}

}  // namespace pario::archive
