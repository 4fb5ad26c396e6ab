#include <unistd.h>

#include "instruments/lab/lab.hpp"

namespace pario::lab {
namespace {

void add_settings(base::Json& json, const Settings& settings) {
  json.member("kind", settings.personality == Personality::ceph ? "ceph" : "lustre");
  json.member("client", settings.client == ClientKind::process ? "process" : "network")
      .member("cache", settings.cache);
  json.member("rate", static_cast<std::uint64_t>(settings.speed.rate))
      .member("link", static_cast<std::uint64_t>(settings.speed.link));
  json.member("latency_ns", settings.speed.latency)
      .member("lock_handover_ns", settings.speed.lock_handover);
  json.member("in_flight", settings.speed.in_flight).member("metadata_ns", settings.metadata);
}

void add_counts(base::Json& json, const Counts& counts) {
  json.begin_object()
      .member("reads", counts.reads)
      .member("writes", counts.writes)
      .member("others", counts.others);
  json.member("bytes_read", counts.bytes_read).member("bytes_written", counts.bytes_written);
  json.member("hand_overs", counts.hand_overs).member("busy_ns", counts.busy).end_object();
}

void add_metadata(base::Json& json, const Metadata& metadata) {
  json.key("metadata").begin_object();
  for (std::size_t kind = 0; kind < kMetadataKinds; ++kind)
    json.member(kMetadataNames[kind], metadata.count(static_cast<MetadataKind>(kind)));
  json.end_object();
}

}  // namespace

std::string status_of(const Lab& lab) {
  std::string room(4096 + 256UL * lab.targets.size(), '\0');
  base::TextBuffer text(room.data(), room.size());
  base::Json json(text);
  json.begin_object()
      .member("version", 1)
      .member("process", ::getpid())
      .member("backing", lab.store.directory().c_str());
  add_settings(json, lab.settings);
  add_metadata(json, lab.metadata);
  json.key("targets").begin_array();
  for (const Counts& counts : lab.targets.counts()) add_counts(json, counts);
  json.end_array().end_object();
  return std::string(json.view());
}

}  // namespace pario::lab
