#include <sys/stat.h>

#include <cerrno>

#include "engine_support.hpp"
#include "parallel/engine/policy.hpp"

namespace pario::engine {
namespace {

/// The errno of each rank's opening, 0 for success.
std::vector<int> outcomes(const OpenRequest& request, const Opener& opener = {}) {
  std::vector<int> numbers(4, -1);
  comm::run_as_threads(kFour, [&](std::shared_ptr<comm::Comm> ranks) {
    auto file =
        opener ? SharedFile::open(ranks, request, opener) : SharedFile::open(ranks, request);
    numbers[static_cast<std::size_t>(ranks->rank())] = file ? 0 : file.error().number;
    if (file) EXPECT_OK((*file)->close());
  });
  return numbers;
}

TEST(EngineOpen, CreatesAFileOnce) {
  const Directory directory;
  OpenRequest request = fresh(directory / "new");
  request.flags = O_RDWR | O_CREAT | O_EXCL;
  EXPECT_EQ(outcomes(request), std::vector<int>(4, 0));
  EXPECT_EQ(outcomes(request), std::vector<int>(4, EEXIST));
}

TEST(EngineOpen, ReportsAMissingFileOnAllRanks) {
  const Directory directory;
  OpenRequest request = fresh(directory / "none");
  request.flags = O_RDONLY;
  EXPECT_EQ(outcomes(request), std::vector<int>(4, ENOENT));
}

TEST(EngineOpen, FailsOnAllRanksWhenItFailsOnOne) {
  const Directory directory;
  std::atomic<int> opened{0};
  const Opener third_fails =
      [&](const file::OpenRequest& request) -> base::Result<std::unique_ptr<file::File>> {
    if (opened.fetch_add(1) == 2)
      return base::Error{.number = EMFILE, .operation = "open", .path = request.path};
    return file::open(request);
  };
  EXPECT_EQ(outcomes(fresh(directory / "a"), third_fails), std::vector<int>(4, EMFILE));
}

TEST(EngineOpen, DeletesOnCloseWhenAsked) {
  const Directory directory;
  OpenRequest request = fresh(directory / "gone");
  request.delete_on_close = true;
  EXPECT_EQ(outcomes(request), std::vector<int>(4, 0));
  EXPECT_EQ(directory.entries(), 0u);
}

TEST(EngineOpen, GivesANewFileThePermissionsOfTheHint) {
  const Directory directory;
  OpenRequest request = fresh(directory / "mode");
  request.hints.file_perm = "0600";
  EXPECT_EQ(outcomes(request), std::vector<int>(4, 0));
  struct stat facts{};
  ASSERT_EQ(::stat(request.path.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);
}

TEST(EngineOpen, RefusesBadHintsWhenStrict) {
  const Directory directory;
  OpenRequest request = fresh(directory / "strict");
  request.rejected = {{{"cb_nodez", "4"}, "unknown hint cb_nodez: did you mean cb_nodes?"}};
  EXPECT_EQ(outcomes(request), std::vector<int>(4, 0));
  request.hints.pario_strict = true;
  EXPECT_EQ(outcomes(request), std::vector<int>(4, EINVAL));
}

TEST(EngineOpen, TakesTheHintsOfRank0) {
  const Directory directory;
  comm::run_as_threads(kFour, [&](std::shared_ptr<comm::Comm> ranks) {
    OpenRequest request = fresh(directory / "hints");
    request.hints.cb_buffer_size = 65536 * static_cast<std::uint64_t>(ranks->rank() + 1);
    auto file = SharedFile::open(ranks, request);
    ASSERT_TRUE(file.ok());
    EXPECT_EQ((*file)->hints().cb_buffer_size, 65536u);
    EXPECT_OK((*file)->close());
  });
}

TEST(EngineOpen, ResizesPreallocatesAndReturnsTheSize) {
  const Directory directory;
  for (const auto& shape : shapes())
    with_file(shape, fresh(directory / "size"), [](SharedFile& file, comm::Comm&) {
      EXPECT_OK(file.resize(1000));
      EXPECT_EQ(file.size().value(), 1000u);
      EXPECT_OK(file.agree(0, {}, "agree"));
      EXPECT_OK(file.preallocate(5000));
      EXPECT_EQ(file.size().value(), 5000u);
      EXPECT_OK(file.sync());
    });
}

TEST(EngineOpen, KnowsFileSystemsWithImmediateVisibility) {
  using layout::Kind;
  const auto visible = [](Kind kind, bool one_node, std::uint64_t merged) {
    AccessPolicy terms{
        .hints = hints::default_file_hints(), .layout = {.kind = kind}, .one_node = one_node};
    terms.hints.pario_merge_collectives = merged;
    return visible_at_once(terms);
  };
  for (const Kind kind : {Kind::local, Kind::lustre, Kind::gpfs, Kind::ceph, Kind::ceph_fuse})
    EXPECT_TRUE(visible(kind, false, 0));
  for (const Kind kind :
       {Kind::nfs, Kind::beegfs, Kind::panfs, Kind::pvfs, Kind::fuse, Kind::unknown}) {
    EXPECT_FALSE(visible(kind, false, 0));
    EXPECT_TRUE(visible(kind, true, 0));
  }
  EXPECT_FALSE(visible(Kind::lustre, true, 1 << 20)) << "merged writes wait for MPI_File_sync";
}

TEST(EngineOpen, ChangesHintsOfAnOpenFileButNotThoseReadAtOpen) {
  const Directory directory;
  with_file(kFour, fresh(directory / "set_info"), [](SharedFile& file, comm::Comm&) {
    hints::FileHints wanted = file.hints();
    wanted.pario_expected_size = 1 << 30;
    wanted.pario_growing = true;
    wanted.cb_buffer_size = 65536;
    EXPECT_OK(file.set_hints(wanted));
    EXPECT_EQ(file.hints().pario_expected_size, 0U);
    EXPECT_FALSE(file.hints().pario_growing);
    EXPECT_EQ(file.hints().cb_buffer_size, 65536U);
  });
}

TEST(EngineOpen, BeginsAViewWithTheHintsOfRank0) {
  const Directory directory;
  with_file(kFour, fresh(directory / "view"), [](SharedFile& file, comm::Comm& ranks) {
    const hints::FileHints before = file.hints();
    hints::FileHints wanted = before;
    wanted.pario_growing = true;
    wanted.cb_buffer_size = 65536;
    const auto begin_view_of = [&](int rank) {
      return file.begin_view(ranks.rank() == rank ? wanted : before, {}, "set_view");
    };
    EXPECT_OK(begin_view_of(3));
    EXPECT_EQ(file.hints(), before);
    EXPECT_OK(begin_view_of(0));
    EXPECT_EQ(file.hints().cb_buffer_size, 65536U);
    EXPECT_FALSE(file.hints().pario_growing);
  });
}

TEST(EngineOpen, BeginsNoViewAfterAnErrorOfARank) {
  const Directory directory;
  with_file(kFour, fresh(directory / "refused"), [](SharedFile& file, comm::Comm& ranks) {
    const base::Error error{.number = EACCES, .detail = "no such type"};
    const base::Status mine = ranks.rank() == 2 ? base::Status(error) : base::Status();
    const base::Status status = file.begin_view(file.hints(), mine, "set_view");
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().rank, 2);
    EXPECT_EQ(status.error().detail, "no such type");
    EXPECT_OK(file.agree(0, {}, "agree"));
  });
}

TEST(EngineOpen, NamesRanksWhoseValuesDiffer) {
  const Directory directory;
  with_file(kFour, fresh(directory / "values"), [](SharedFile& file, comm::Comm& ranks) {
    EXPECT_OK(file.agree(7, {}, "set_view"));
    const base::Status status = file.agree(ranks.rank() % 2 == 1 ? 8u : 7u, {}, "set_view");
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().text().find("ranks 1 and 3"), std::string::npos)
        << status.error().text();
  });
}

}  // namespace
}  // namespace pario::engine
