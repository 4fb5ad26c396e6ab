// Module records: files of many records. An index says where each begins (docs/records.md); with
// it, or without, files larger than memory are shuffled by streaming. Data files are never changed.
//
// Results are values or an Error. What takes long calls a Show function on the caller's thread, now
// and then; it can stop the work. Nothing keeps threads or locks between calls, so all may be used
// after a fork.
#pragma once

#include "data/records/convert.hpp"
#include "data/records/dataset.hpp"
#include "data/records/formats.hpp"
#include "data/records/index.hpp"
#include "data/records/index_cache.hpp"
#include "data/records/indexing.hpp"
#include "data/records/loader.hpp"
#include "data/records/order.hpp"
#include "data/records/output.hpp"
#include "data/records/packed.hpp"
#include "data/records/probe.hpp"
#include "data/records/shuffle.hpp"
