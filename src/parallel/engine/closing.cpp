#include "parallel/engine/closing.hpp"

#include <fcntl.h>

#include <cerrno>

#include "parallel/engine/report.hpp"

namespace pario::engine {
namespace {

constexpr const char* kClose = "MPI_File_close";

/// Collective. An error of the report does not fail the close.
void report_statistics(OpenedFile& opened, const Call& call) {
  FileContext& context = opened.context;
  const RankStatistics mine{context.statistics(), opened.open_ns};
  std::vector<RankStatistics> all(static_cast<std::size_t>(context.comm().size()), mine);
  if (context.comm().size() > 1 &&
      !opened.transfers.calls().gather(&mine, sizeof mine, all.data(), call))
    return;
  if (!context.is_first()) return;
  const std::vector<HintOutcome> audit =
      make_audit(opened.request, context.hints(), opened.striping_reason, context.used_windows());
  write_report(
      {context.path(), context.comm(), context.hints(), context.policy()->layout, audit, all});
}

/// Fails the Comm, because the other ranks are in another call and must not wait for this rank.
base::Error leave_other_ranks(FileContext& context, const base::Error& error) {
  comm::Comm& comm = context.comm();
  const std::string name = comm::format_ranks(std::vector{comm.world_rank(comm.rank())});
  const std::string detail = name + " has closed the file, and will take part in no other call";
  comm.fail(context.complete_error({.number = ESTALE, .detail = detail}, kClose));
  static_cast<void>(comm.failure());  // shares the error with the other nodes
  return error;
}

/// Joins the subfiles, or records the size of the whole. The file is complete without these; only
/// hint pario_join=enable makes a failed join an error. If the file is in use, the last handle to
/// close it does both.
base::Status finish_subfiles(const FileContext& context) {
  const hints::Choice choice = context.hints().pario_join;
  const bool must = choice == hints::Choice::enable;
  if (choice != hints::Choice::disable) {
    const file::Joining how = must ? file::Joining::by_all_means : file::Joining::by_sharing;
    base::Status joined = file::join(context.path(), {}, how);
    if (joined || (must && joined.error().number != EBUSY)) return joined;
  }
  static_cast<void>(file::record_size(context.path()));
  return {};
}

/// Collective: deletes the file, or finishes its subfiles, when no rank has it open any more.
base::Status finish_file(OpenedFile& opened, bool is_complete) {
  FileContext& context = opened.context;
  const OpenRequest& request = opened.request;
  const bool written = is_complete && (request.flags & O_ACCMODE) != O_RDONLY;
  const bool has_subfiles = written && context.file().subfiles() > 1;
  if (!request.delete_on_close && !has_subfiles) return {};
  base::Status mine;
  if (context.is_first())
    mine = request.delete_on_close ? file::remove(request.path) : finish_subfiles(context);
  const char* operation = request.delete_on_close ? "delete" : "join";
  return opened.agree(mine, operation, context.describe_call(kClose));
}

}  // namespace

base::Status close_file(OpenedFile& opened) {
  FileContext& context = opened.context;
  opened.transfers.finish_independent();
  const Call call = context.describe_call(kClose);
  base::Status mine;
  const base::Status met = opened.meet_and_flush(call, mine);
  opened.transfers.kept_writes().unregister();
  if (met) report_statistics(opened, call);
  if (context.is_first()) opened.pointer->remove();
  context.guards().handles->end_lease();
  const base::Status closed = context.file().close();
  if (mine) mine = closed;
  if (!met)
    return leave_other_ranks(context,
                             closed ? met.error() : append_error(met.error(), closed.error()));
  base::Status all = opened.agree(mine, call.name, call);
  base::Status finished = finish_file(opened, all.ok());
  return all ? finished : all;
}

}  // namespace pario::engine
