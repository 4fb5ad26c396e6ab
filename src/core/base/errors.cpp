#include "core/base/errors.hpp"

#include <cerrno>

namespace pario::base {

const char* errno_name(int number) {
  switch (number) {
#define PARIO_ERROR(name, text) \
  case name:                    \
    return #name;
#include "core/base/errors.def"
#undef PARIO_ERROR
    default:
      return "unknown error";
  }
}

const char* errno_text(int number) {
  switch (number) {
#define PARIO_ERROR(name, text) \
  case name:                    \
    return text;
#include "core/base/errors.def"
#undef PARIO_ERROR
    default:
      return "unknown error";
  }
}

}  // namespace pario::base
