#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/hints/hints.hpp"

namespace pario::hints {
namespace {

/// Returns the reason of set(), whose result must be `taken`.
std::string reason_of(const std::string& key, const std::string& value, bool taken = false) {
  FileHints hints = default_file_hints();
  std::string reason;
  EXPECT_EQ(set(hints, {key, value}, reason), taken) << key << '=' << value;
  return reason;
}

TEST(FileHints, DefaultsAreThoseOfTheTableAndAllValid) {
  FileHints hints = default_file_hints();
  EXPECT_EQ(hints.romio_cb_write, Choice::automatic);
  EXPECT_EQ(hints.cb_buffer_size, 4u << 20);
  EXPECT_EQ(hints.cb_nodes, 0u);
  EXPECT_FALSE(hints.pario_check);
  std::string reason;
  for (const HintInfo& info : file_table())
    EXPECT_TRUE(set(hints, {std::string(info.key), info.initial}, reason)) << reason;
}

TEST(FileHints, AreSetByKeyOrAlias) {
  FileHints hints = default_file_hints();
  std::string reason;
  EXPECT_TRUE(set(hints, {"cb_buffer_size", "16M"}, reason));
  EXPECT_TRUE(set(hints, {"cb_aggregators", "7"}, reason));
  EXPECT_TRUE(set(hints, {"romio_ds_write", "DISABLE"}, reason));
  EXPECT_TRUE(set(hints, {"romio_cb_read", "true"}, reason));
  EXPECT_TRUE(set(hints, {"pario_verify", "yes"}, reason));
  EXPECT_TRUE(set(hints, {"striping_factor", "-1"}, reason));
  EXPECT_EQ(hints.cb_buffer_size, 16u << 20);
  EXPECT_EQ(hints.cb_nodes, 7u);
  EXPECT_EQ(hints.romio_ds_write, Choice::disable);
  EXPECT_EQ(hints.romio_cb_read, Choice::enable);
  EXPECT_TRUE(hints.pario_verify);
  EXPECT_EQ(hints.striping_factor, 65535u);
  EXPECT_EQ(reason, "");
}

TEST(FileHints, BadValueIsNamedWithWhatWasExpected) {
  EXPECT_EQ(reason_of("cb_buffer_size", "12"),
            "cb_buffer_size=12: expected a size such as 64K, 256M or 2G, from 4096 to 2147483648");
  EXPECT_EQ(reason_of("cb_nodes", "many"), "cb_nodes=many: expected a number from 0 to 1048576");
  EXPECT_EQ(reason_of("romio_cb_write", "sometimes"),
            "romio_cb_write=sometimes: expected automatic, enable or disable");
  EXPECT_EQ(reason_of("file_perm", "0689"), "file_perm=0689: expected octal digits");
  EXPECT_EQ(reason_of("pario_report", "timer"),
            "pario_report=timer: expected words of: hints statistics timers all json");
}

TEST(FileHints, SecondsTakeDecimals) {
  const std::pair<const char*, const char*> taken[] = {
      {"0", "0"}, {"60", "60"}, {"0.25", "0.25"}, {"1.5000", "1.5"}, {"2.0009", "2"}};
  for (const auto& [value, answered] : taken) {
    FileHints hints = default_file_hints();
    std::string reason;
    ASSERT_TRUE(set(hints, {"pario_watchdog", value}, reason)) << reason;
    for (const Setting& setting : settings_of(hints))
      EXPECT_EQ(setting.value, setting.key == "pario_watchdog" ? answered : setting.value);
  }
  for (const char* value : {"", "soon", "-1", ".5", "5.", "1e3", "1.5s", "9999999999"})
    EXPECT_EQ(reason_of("pario_watchdog", value),
              std::string("pario_watchdog=") + value +
                  ": expected seconds such as 60 or 0.5, from 0 to 1073741824");
}

TEST(FileHints, OfAnOpenFileChangeWhereTheirRowSaysSo) {
  const FileHints before = default_file_hints();
  FileHints wanted = before;
  std::string reason;
  for (const HintInfo& info : file_table()) {
    const char* value = info.type == Type::bytes    ? "2M"
                        : info.type == Type::flag   ? "yes"
                        : info.type == Type::choice ? "disable"
                                                    : "7";
    ASSERT_TRUE(
        set(wanted, {std::string(info.key), info.type == Type::report ? "json" : value}, reason))
        << reason;
  }
  std::string kept;
  const std::vector<Setting> asked = settings_of(wanted),
                             got = settings_of(hints_of_open_file(before, wanted));
  for (const Setting& setting : asked) {
    const auto same = [&](const Setting& other) {
      return other.key == setting.key && other.value == setting.value;
    };
    if (std::none_of(got.begin(), got.end(), same)) kept += setting.key + " ";
  }
  EXPECT_EQ(kept,
            "file_perm pario_memory pario_subfiles striping_factor striping_unit start_iodevice "
            "pario_expected_size "
            "pario_expected_writers pario_growing ");
}

TEST(FileHints, NamesOfStripingHintsAreFoundInSpecifications) {
  for (const HintInfo& info : file_table()) {
    const std::string setting = info.setting, specification = "*:" + std::string(info.key) + "=1";
    EXPECT_EQ(name_striping(specification), setting.starts_with("striping.")) << info.key;
    if (setting.starts_with("striping.")) {
      EXPECT_TRUE(name_striping(std::string("*:") + info.names + "=1")) << info.names;
    }
  }
}

TEST(FileHints, StripesThatTheFileSystemDoesNotReportAreUnknown) {
  FileHints hints = default_file_hints();
  hints.striping_unit = 1 << 20;
  std::string missing;
  const auto known_settings = known_settings_of(hints);
  for (const Setting& setting : settings_of(hints))
    if (std::ranges::find(known_settings, setting.key, &Setting::key) == known_settings.end())
      missing += setting.key + " ";
  EXPECT_EQ(missing, "striping_factor start_iodevice ");
}

TEST(Tables, EveryRowHasAMeaningAndEverySettingATableAndAKey) {
  for (const auto table : {hints::table(), file_table(), stream_table()})
    for (const HintInfo& info : table) {
      EXPECT_STRNE(info.meaning, "") << info.key;
      const std::string_view setting = info.setting;
      if (!setting.empty()) {
        EXPECT_NE(setting.find('.'), setting.npos) << info.key;
      }
    }
}

TEST(FileHints, BlankInAValueIsPointedOut) {
  EXPECT_EQ(reason_of("cb_buffer_size", " 1M"),
            "cb_buffer_size= 1M: a blank too many: did you mean cb_buffer_size=1M?");
}

TEST(FileHints, MisspeltKeyIsAnErrorWithASuggestion) {
  EXPECT_EQ(reason_of("romio_cb_wirte", "enable"),
            "unknown hint romio_cb_wirte: did you mean romio_cb_write?");
  EXPECT_EQ(reason_of("stripe_cout", "4"), "unknown hint stripe_cout: did you mean stripe_count?");
  EXPECT_EQ(reason_of("colour", "red"), "unknown hint colour");
}

TEST(FileHints, KeysOfOtherLibrariesAreTakenWithTheReasonWhyTheyChangeNothing) {
  EXPECT_EQ(reason_of("romio_no_indep_rw", "true", true),
            "romio_no_indep_rw has no meaning here because opening a file takes a rank "
            "only microseconds");
  EXPECT_EQ(reason_of("nc_header_align_size", "1M", true),
            "nc_header_align_size has no meaning here because it is for PnetCDF");
  EXPECT_TRUE(is_known_key("cb_config_list"));
  EXPECT_TRUE(is_known_key("cb_nodes"));
  EXPECT_FALSE(is_known_key("cb_node"));
  EXPECT_EQ(canonical("cb_config_list"), "");
  EXPECT_EQ(canonical("stripe_size"), "striping_unit");
}

TEST(FileHints, SettingsAreTheTextsThatSetTakes) {
  FileHints hints = default_file_hints();
  std::string reason;
  ASSERT_TRUE(set(hints, {"pario_report", "hints json"}, reason));
  ASSERT_TRUE(set(hints, {"cb_buffer_size", "1M"}, reason));
  FileHints copy = default_file_hints();
  for (const Setting& setting : settings_of(hints))
    EXPECT_TRUE(set(copy, setting, reason)) << reason;
  EXPECT_EQ(copy.pario_report, "hints json");
  EXPECT_EQ(copy.cb_buffer_size, 1u << 20);
  EXPECT_EQ(settings_of(hints).front().key, "romio_cb_write");
  EXPECT_EQ(settings_of(hints).front().value, "automatic");
}

StripingHints striping_of(std::string_view specifications, std::string_view path) {
  StripingHints hints;
  EXPECT_TRUE(striping_hints_of(specifications, path, hints))
      << specifications << " says nothing of " << path;
  return hints;
}

TEST(StripingHints, TheLastPatternThatMatchesWinsKeyByKey) {
  const auto hints =
      striping_of("*:stripe_count=2:striping_unit=1M,*.h5:striping_factor=8,*.nc:striping_factor=4",
                  "/scratch/a.h5");
  EXPECT_EQ(hints.striping_factor, 8u);
  EXPECT_EQ(hints.striping_unit, 1u << 20);
  EXPECT_EQ(hints.start_iodevice, 65535u);
  EXPECT_EQ(striping_of("*:expected_size=200G", "/x").pario_expected_size, 200ull << 30);
}

TEST(StripingHints, OtherKeysAndWhatIsMalformedMeanNothing) {
  StripingHints hints;
  for (const char* one : {"", "*.nc:striping_factor=8", "*:cb_nodes=2", "*:striping_factor=many",
                          "striping_factor=8"})
    EXPECT_FALSE(striping_hints_of(one, "/scratch/a.h5", hints)) << one;
  EXPECT_EQ(hints, default_striping_hints());
}

}  // namespace
}  // namespace pario::hints
