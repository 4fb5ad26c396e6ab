// Module archive: directories of many files as few zstd-compressed tar shards and an index
// (docs/move.md). Any tar that knows zstd reads the shards; with the index a member is read by
// decompressing its frame alone.
//
// Results are values or an Error that names the file. Long operations use several threads and
// call a Show function on the caller's, now and then; it can stop them.
#pragma once

#include "data/archive/member_stream.hpp"
#include "data/archive/pack.hpp"
#include "data/archive/packed.hpp"
#include "data/archive/unpack.hpp"
#include "data/archive/verify.hpp"
