// Datatypes of MPI as layouts.
#include "parallel/mpiio/datatypes.hpp"

#include <gtest/gtest.h>

#include "fake_mpi.hpp"
#include "parallel/mpiio/library.hpp"
#include "pattern_model.hpp"

namespace pario::mpiio {
namespace {

using fake::make;
using fake::Type;
using pattern::TypeMap;

std::string layout_text(Word type) { return layout_of(type).text(); }

Word integer() { return h(mpi::Handle::MPI_INT); }

TEST(MpiioDatatypes, NamedTypesAreBlocks) {
  EXPECT_EQ(layout_text(integer()), "4");
  EXPECT_EQ(layout_text(h(mpi::Handle::MPI_BYTE)), "1");
  EXPECT_TRUE(layout_of(integer()).contiguous());
}

TEST(MpiioDatatypes, PairsHaveGapsWhereC) {
  EXPECT_EQ(layout_of(h(mpi::Handle::MPI_DOUBLE_INT)), *TypeMap::parse("12@0+16"))
      << "a gap behind it";
  EXPECT_EQ(layout_of(h(mpi::Handle::MPI_SHORT_INT)), *TypeMap::parse("[0:2 4:4]"))
      << "a gap within";
}

TEST(MpiioDatatypes, OneTypeOverAndOver) {
  EXPECT_EQ(layout_of(make({.combiner = k(MPI_COMBINER_CONTIGUOUS),
                            .integers = {3},
                            .types = {integer()},
                            .extent = 12})),
            TypeMap::block(12));
  EXPECT_EQ(layout_of(make({.combiner = k(MPI_COMBINER_VECTOR),
                            .integers = {3, 2, 4},
                            .types = {integer()},
                            .extent = 40})),
            *TypeMap::parse("3x8/16"));
  EXPECT_EQ(layout_of(make({.combiner = k(MPI_COMBINER_HVECTOR),
                            .integers = {2, 1},
                            .addresses = {10},
                            .types = {integer()},
                            .extent = 14})),
            *TypeMap::parse("2x4/10"));
  EXPECT_EQ(layout_of(make({.combiner = k(MPI_COMBINER_DUP), .types = {integer()}, .extent = 4})),
            TypeMap::block(4));
}

TEST(MpiioDatatypes, ListsOfBlocks) {
  const TypeMap wanted = *TypeMap::parse("[4:8 20:4]");
  EXPECT_EQ(layout_of(make({.combiner = k(MPI_COMBINER_INDEXED),
                            .integers = {3, 2, 0, 1, 1, 9, 5},
                            .types = {integer()},
                            .lower = 4,
                            .extent = 20})),
            wanted)
      << "blocks without elements count for nothing";
  EXPECT_EQ(layout_of(make({.combiner = k(MPI_COMBINER_HINDEXED),
                            .integers = {2, 2, 1},
                            .addresses = {4, 20},
                            .types = {integer()},
                            .lower = 4,
                            .extent = 20})),
            wanted);
  EXPECT_EQ(layout_of(make({.combiner = k(MPI_COMBINER_INDEXED_BLOCK),
                            .integers = {2, 1, 0, 3},
                            .types = {integer()},
                            .extent = 16})),
            *TypeMap::parse("2x4/12"));
  EXPECT_EQ(layout_of(make({.combiner = k(MPI_COMBINER_HINDEXED_BLOCK),
                            .integers = {2, 2},
                            .addresses = {0, 11},
                            .types = {integer()},
                            .extent = 19})),
            *TypeMap::parse("2x8/11"));
  EXPECT_EQ(
      layout_of(make({.combiner = k(MPI_COMBINER_INDEXED), .integers = {0}, .types = {integer()}}))
          .size(),
      0u);
}

TEST(MpiioDatatypes, ListsOfTypesWithHoles) {
  const Word holes = make({.combiner = k(MPI_COMBINER_VECTOR),
                           .integers = {2, 1, 2},
                           .types = {integer()},
                           .extent = 12});
  const Word list = make({.combiner = k(MPI_COMBINER_INDEXED),
                          .integers = {2, 1, 2, 0, 3},
                          .types = {holes},
                          .extent = 60});
  EXPECT_EQ(layout_of(list), *TypeMap::parse("[0:2x4/8 36:2x4/8 48:2x4/8]"));
}

TEST(MpiioDatatypes, StructuresKeepTheBoundsThatMpiGivesThem) {
  const Word type = make({.combiner = k(MPI_COMBINER_STRUCT),
                          .integers = {2, 1, 3},
                          .addresses = {0, 8},
                          .types = {h(mpi::Handle::MPI_DOUBLE), integer()},
                          .extent = 24});
  EXPECT_EQ(layout_of(type), *TypeMap::parse("20@0+24"));
  const Word resized = make({.combiner = k(MPI_COMBINER_RESIZED),
                             .addresses = {-4, 64},
                             .types = {type},
                             .lower = -4,
                             .extent = 64});
  EXPECT_EQ(layout_of(resized), *TypeMap::parse("20@-4+64"));
}

/// A 4 x 6 array, rows 1 and 2, columns 2 to 4.
TEST(MpiioDatatypes, SubarraysInBothOrdersAndBothSizesOfNumbers) {
  const int c = k(MPI_ORDER_C), fortran = k(MPI_ORDER_FORTRAN);
  const TypeMap wanted = TypeMap::parse("[32:2x12/24]")->with_extent(0, 96);
  EXPECT_EQ(layout_of(make({.combiner = k(MPI_COMBINER_SUBARRAY),
                            .integers = {2, 4, 6, 2, 3, 1, 2, c},
                            .types = {integer()},
                            .extent = 96})),
            wanted);
  EXPECT_EQ(layout_of(make({.combiner = k(MPI_COMBINER_SUBARRAY),
                            .integers = {2, 6, 4, 3, 2, 2, 1, fortran},
                            .types = {integer()},
                            .extent = 96})),
            wanted);
  EXPECT_EQ(layout_of(make({.combiner = k(MPI_COMBINER_SUBARRAY),
                            .integers = {2, c},
                            .counts = {4, 6, 2, 3, 1, 2},
                            .types = {integer()},
                            .extent = 96})),
            wanted);
}

/// Rank 1 of 2 x 2: 5 rows in blocks of the default size, 7 columns in turn by two.
TEST(MpiioDatatypes, DistributedArrays) {
  const int block = k(MPI_DISTRIBUTE_BLOCK), cyclic = k(MPI_DISTRIBUTE_CYCLIC),
            automatic = k(MPI_DISTRIBUTE_DFLT_DARG);
  const std::vector<int> integers{4, 1, 2, 5, 7, block, cyclic, automatic, 2, 2, 2, k(MPI_ORDER_C)};
  const TypeMap row = *TypeMap::parse("[8:8 24:4]");
  EXPECT_EQ(layout_of(make({.combiner = k(MPI_COMBINER_DARRAY),
                            .integers = integers,
                            .types = {integer()},
                            .extent = 140})),
            TypeMap::repeat(row, 3, 28).with_extent(0, 140));
}

TEST(MpiioDatatypes, LayoutsAreKeptWithTheirType) {
  const Word type = make({.combiner = k(MPI_COMBINER_CONTIGUOUS),
                          .integers = {5},
                          .types = {integer()},
                          .extent = 20});
  EXPECT_EQ(layout_of(type).size(), 20u);
  const int looks = fake::looks();
  EXPECT_EQ(layout_of(type).size(), 20u);
  EXPECT_EQ(fake::looks(), looks);
}

TEST(MpiioDatatypes, TypesInAFileHaveTheSizeOfTheFile) {
  const Word real = h(mpi::Handle::MPI_LONG_DOUBLE);
  const Word type = make(
      {.combiner = k(MPI_COMBINER_VECTOR), .integers = {2, 1, 2}, .types = {real}, .extent = 48});
  const TypeMap layout = layout_in_file(type, *representation("external32"));
  EXPECT_EQ(layout.size(), 32u);
  EXPECT_EQ(layout.extent(), 48);
}

TEST(MpiioDatatypes, NoBorrowedHandleIsKept) {
  const Word inner = make(
      {.combiner = k(MPI_COMBINER_CONTIGUOUS), .integers = {2}, .types = {integer()}, .extent = 8});
  const Word outer = make(
      {.combiner = k(MPI_COMBINER_VECTOR), .integers = {2, 1, 2}, .types = {inner}, .extent = 24});
  static_cast<void>(layout_of(outer));
  EXPECT_EQ(fake::count_borrowed(), 0);
}

/// Random types, with a model that lists every byte.
class Maker {
 public:
  explicit Maker(std::uint64_t seed) : random_(seed) {}
  struct Made {
    Word type;
    pattern::Model model;
  };

  Made any(int depth) {
    if (depth == 0) return {integer(), {{0, 1, 2, 3}, true, 0, 4}};
    const Made of = any(depth - 1);
    switch (random_.upto(4)) {
      case 0:
        return vector(of);
      case 1:
        return list(of, false);
      case 2:
        return list(of, true);
      case 3:
        return structure(of, any(depth - 1));
      default:
        return make_resized(of);
    }
  }

 private:
  static Made finish_type(Type type, pattern::Model model) {
    type.lower = model.lower, type.extent = model.extent;
    return {make(std::move(type)), std::move(model)};
  }
  static void put(pattern::Model& model, const Made& of, std::int64_t displacement,
                  std::int64_t copies) {
    for (std::int64_t i = 0; i < copies; ++i)
      model.put(of.model, displacement + i * of.model.extent);
  }
  int number(int low, int high) { return static_cast<int>(random_.between(low, high)); }

  Made vector(const Made& of) {
    const int count = number(0, 4), length = number(0, 3), stride = number(-3, 6);
    pattern::Model model;
    for (int i = 0; i < count; ++i) put(model, of, i * stride * of.model.extent, length);
    return finish_type({.combiner = k(MPI_COMBINER_VECTOR),
                        .integers = {count, length, stride},
                        .types = {of.type}},
                       std::move(model));
  }
  Made list(const Made& of, bool in_bytes) {
    const int count = number(0, 5);
    Type type{.combiner = k(in_bytes ? MPI_COMBINER_HINDEXED : MPI_COMBINER_INDEXED),
              .integers = {count},
              .types = {of.type}};
    std::vector<int> lengths, places;
    pattern::Model model;
    for (int i = 0; i < count; ++i) {
      lengths.push_back(number(0, 3)), places.push_back(number(-5, 30));
      put(model, of, in_bytes ? places.back() : places.back() * of.model.extent, lengths.back());
    }
    type.integers.insert(type.integers.end(), lengths.begin(), lengths.end());
    if (in_bytes)
      type.addresses.assign(places.begin(), places.end());
    else
      type.integers.insert(type.integers.end(), places.begin(), places.end());
    return finish_type(std::move(type), std::move(model));
  }
  Made structure(const Made& first, const Made& second) {
    const int lengths[] = {number(0, 2), number(1, 2)},
              places[] = {number(-20, 20), number(-20, 60)};
    pattern::Model model;
    put(model, first, places[0], lengths[0]);
    put(model, second, places[1], lengths[1]);
    return finish_type({.combiner = k(MPI_COMBINER_STRUCT),
                        .integers = {2, lengths[0], lengths[1]},
                        .addresses = {places[0], places[1]},
                        .types = {first.type, second.type}},
                       std::move(model));
  }
  Made make_resized(const Made& of) {
    pattern::Model model = of.model;
    model.lower = number(-8, 8), model.extent = number(0, 60), model.bounded = true;
    return finish_type({.combiner = k(MPI_COMBINER_RESIZED),
                        .addresses = {model.lower, model.extent},
                        .types = {of.type}},
                       std::move(model));
  }

  pattern::Random random_;
};

TEST(MpiioDatatypes, AgreeWithAModelOfBytes) {
  const std::uint64_t seed = pattern::first_seed();
  for (std::uint64_t i = 0; i < 2000 && !HasFailure(); ++i) {
    const Maker::Made made = Maker(seed + i).any(static_cast<int>(i % 4));
    const TypeMap layout = layout_of(made.type);
    SCOPED_TRACE("seed " + std::to_string(seed + i) + ": " + layout.text());
    ASSERT_EQ(layout.size(), made.model.bytes.size());
    EXPECT_EQ(layout.extent(), made.model.extent);
    if (made.model.bytes.empty()) continue;
    EXPECT_EQ(layout.lower(), made.model.lower);
    std::vector<std::pair<std::int64_t, std::uint64_t>> runs;
    for (pattern::Cursor cursor(layout, 0, layout.size()); cursor.current().length > 0;
         cursor.advance(cursor.current().length))
      runs.emplace_back(cursor.current().offset, cursor.current().length);
    EXPECT_EQ(runs, pattern::model_runs(made.model, 0, layout.size()));
  }
}

}  // namespace
}  // namespace pario::mpiio
