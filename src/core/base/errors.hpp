// Names and descriptions of errnos, without the heap and untranslated.
#pragma once

namespace pario::base {

/// The name of an errno, "ENOSPC"; never null.
const char* errno_name(int number);
/// The description of an errno in English, "No space left on device"; never null.
const char* errno_text(int number);

}  // namespace pario::base
