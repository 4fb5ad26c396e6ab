// Module records: files of many records. An index has the offset of each record (docs/records.md);
// files larger than memory are shuffled by streaming, with an index or without. Data files are
// never changed.
//
// Results are values or an Error. Long work calls a Show function on the caller's thread at
// intervals, which can stop it. No call leaves threads or locks, so all may be used after a fork.
#pragma once

#include "data/records/convert.hpp"
#include "data/records/dataset.hpp"
#include "data/records/formats.hpp"
#include "data/records/index.hpp"
#include "data/records/index_cache.hpp"
#include "data/records/index_files.hpp"
#include "data/records/indexing.hpp"
#include "data/records/loader.hpp"
#include "data/records/order.hpp"
#include "data/records/output.hpp"
#include "data/records/packed.hpp"
#include "data/records/probe.hpp"
#include "data/records/shuffle.hpp"
