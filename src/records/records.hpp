// Room records: files of many records. An index says where each begins (docs/records.md); with it, or without, files larger than memory
// are shuffled by streaming. Data files are never changed.
//
// Results are values or an Error. What takes long calls a Show function on the caller's thread, now and then; it can stop the work.
// Nothing keeps threads or locks between calls, so all may be used after a fork.
#pragma once

#include "records/convert.hpp"
#include "records/dataset.hpp"
#include "records/formats.hpp"
#include "records/host.hpp"
#include "records/index.hpp"
#include "records/index_cache.hpp"
#include "records/indexing.hpp"
#include "records/loader.hpp"
#include "records/order.hpp"
#include "records/output.hpp"
#include "records/packed.hpp"
#include "records/probe.hpp"
#include "records/shuffle.hpp"
