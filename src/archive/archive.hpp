// Room archive: directories of many files as few zstd-compressed tar shards and an index (docs/move.md). Any tar that knows zstd reads the
// shards; with the index a member is read by decompressing its frame alone.
//
// Results are values or an Error that names the file. What takes long works with several threads and calls a Show function on the
// caller's, now and then; it can stop the work.
#pragma once

#include "archive/member_stream.hpp"
#include "archive/pack.hpp"
#include "archive/packed.hpp"
#include "archive/unpack.hpp"
#include "archive/verify.hpp"
