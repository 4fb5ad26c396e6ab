// Descriptions of errnos, without the heap and untranslated; for their names see result.hpp.
#pragma once

namespace pario::base {

/// The description of an errno in English, "No space left on device"; never null.
const char* errno_text(int number);

}  // namespace pario::base
