// Room base: what the other rooms stand on. Nothing here uses the heap, stdio or a system call wrapper that pario itself interposes,
// so everything may be used inside the tracer and in signal handlers; the exception is result.hpp, which is for the rooms that move data.
#pragma once

#include "base/bytesize.hpp"
#include "base/clock.hpp"
#include "base/extent.hpp"
#include "base/futex.hpp"
#include "base/paths.hpp"
#include "base/result.hpp"
#include "base/spinlock.hpp"
#include "base/system.hpp"
#include "base/text.hpp"
#include "base/xxhash.hpp"
