#include "bindings/bindings.hpp"

NB_MODULE(_native, module) {
#ifdef NDEBUG
  // objects that daemon threads hold at exit do not concern users
  nanobind::set_leak_warnings(false);
#endif
  pario::bindings::add_tables(module);
  pario::bindings::add_events(module);
  pario::bindings::add_hints(module);
  pario::bindings::add_records(module);
  pario::bindings::add_loader(module);
  pario::bindings::add_archive(module);
  pario::bindings::add_shared_file(module);
  pario::bindings::add_comm(module);
  pario::bindings::add_checkpoint(module);
  pario::bindings::add_model(module);
  pario::bindings::add_replay(module);
  pario::bindings::add_storage(module);
  pario::bindings::add_objects(module);
  pario::bindings::add_stripes(module);
  pario::bindings::add_ways(module);
}
