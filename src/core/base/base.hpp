// Module base: the foundation of all modules. No function uses the heap, stdio or a system call
// wrapper that pario interposes, so all may be called inside the tracer and in signal handlers;
// except for result.hpp, for the modules that move data, and threads.hpp.
#pragma once

#include "core/base/clock.hpp"
#include "core/base/errors.hpp"
#include "core/base/extent.hpp"
#include "core/base/file_bits.hpp"
#include "core/base/futex.hpp"
#include "core/base/parsing.hpp"
#include "core/base/paths.hpp"
#include "core/base/result.hpp"
#include "core/base/spinlock.hpp"
#include "core/base/system.hpp"
#include "core/base/text.hpp"
#include "core/base/xxhash.hpp"
