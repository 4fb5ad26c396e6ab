// MPI_File_sync: which calls reach the file.
#include <atomic>
#include <cerrno>

#include "engine_support.hpp"

namespace pario::engine {
namespace {

/// The syncs of all ranks' files; each fails while `error` is not 0.
struct Syncs {
  std::atomic<int> count{0}, error{0};
};

Opener counting(Syncs& syncs) {
  return [&syncs](const file::OpenRequest& request) -> base::Result<std::unique_ptr<file::File>> {
    auto file = file::open(request);
    if (!file) return file;
    return file::make_faulty(std::move(*file), [&syncs](const std::string& name, base::Extent) {
      if (name != "sync") return file::Fault{};
      ++syncs.count;
      const int error = syncs.error;
      return error == 0 ? file::Fault{} : file::Fault{file::Fault::Kind::error, error};
    });
  };
}

struct RankOfFile {
  comm::Comm& comm;
  SharedFile& file;
  Syncs& syncs;

  /// Calls sync() on all ranks and returns the syncs of the file that it made.
  int count_syncs(int error = 0) const {
    meet();
    syncs.count = 0;
    syncs.error = error;
    meet();
    const base::Status synced = file.sync();
    EXPECT_EQ(synced.ok() ? 0 : synced.error().number, error);
    meet();
    return syncs.count;
  }
  void write(int rank, With with) const {
    std::vector<std::byte> buffer(10);
    const auto own = static_cast<std::uint64_t>(comm.rank()) * 10;
    if (with == With::together || comm.rank() == rank)
      EXPECT_OK(file.write(plain(buffer, own), with, "write"));
  }
  void meet() const { EXPECT_OK(file.agree(0, {}, "agree")); }
};

void run(const std::vector<int>& shape, std::uint64_t write_behind,
         const std::function<void(const RankOfFile& ranks, int nodes)>& body) {
  const Directory directory;
  Syncs syncs;
  comm::run_as_threads(shape, [&](std::shared_ptr<comm::Comm> comm) {
    OpenRequest request = fresh(directory / "file");
    request.hints.pario_write_behind = write_behind;
    auto file = SharedFile::open(comm, request, counting(syncs));
    ASSERT_TRUE(file.ok()) << file.error().text();
    body({*comm, **file, syncs}, comm->topology().nodes());
    EXPECT_OK((*file)->close());
  });
}

TEST(EngineSync, SyncsEachNodeOnceIfARankHasChangedTheFile) {
  for (const auto& shape : shapes())
    run(shape, 0, [&](const RankOfFile& ranks, int nodes) {
      EXPECT_EQ(ranks.count_syncs(), 0) << "nothing has been written";
      ranks.write(static_cast<int>(shape.size()) - 1, With::alone);
      EXPECT_EQ(ranks.count_syncs(), nodes);
      EXPECT_EQ(ranks.count_syncs(), 0) << "all is on the device";
      ranks.write(0, With::together);
      EXPECT_EQ(ranks.count_syncs(), nodes);
      EXPECT_OK(ranks.file.resize(1000));
      EXPECT_EQ(ranks.count_syncs(), nodes);
      EXPECT_EQ(ranks.count_syncs(), 0);
    });
}

TEST(EngineSync, SyncsKeptWrites) {
  for (const auto& shape : shapes())
    run(shape, 1 << 16, [&](const RankOfFile& ranks, int nodes) {
      ranks.write(static_cast<int>(shape.size()) - 1, With::alone);
      EXPECT_EQ(ranks.count_syncs(), nodes);
    });
}

TEST(EngineSync, IsTriedAgainAfterAnError) {
  for (const auto& shape : shapes())
    run(shape, 0, [](const RankOfFile& ranks, int nodes) {
      ranks.write(0, With::alone);
      EXPECT_EQ(ranks.count_syncs(EIO), nodes);
      EXPECT_EQ(ranks.count_syncs(), nodes);
      EXPECT_EQ(ranks.count_syncs(), 0);
    });
}

}  // namespace
}  // namespace pario::engine
