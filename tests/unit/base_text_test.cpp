#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "core/base/base.hpp"

namespace pario::base {
namespace {

std::string json_string(std::string_view text) {
  Text<256> out;
  add_json_string(out, text);
  return std::string(out.view());
}

TEST(TextBuffer, AppendsTextAndNumbers) {
  Text<32> text;
  text.add("a").add('=').add(-42).add(' ').add(255u, 16);
  EXPECT_EQ(text.view(), "a=-42 ff");
  EXPECT_TRUE(text.complete());
}

TEST(TextBuffer, LeavesOutWhatDoesNotFitAndSaysSo) {
  Text<4> text;
  text.add("abc").add("defg").add("d");
  EXPECT_EQ(text.view(), "abcd");
  EXPECT_FALSE(text.complete());
  EXPECT_STREQ(text.c_str(), "abc");
}

TEST(JsonString, EscapesQuotesBackslashesAndControls) {
  EXPECT_EQ(json_string("a\"b\\c\n\x7f"), R"("a\"b\\c\u000a\u007f")");
}

TEST(JsonString, KeepsUtf8) {
  EXPECT_EQ(json_string("gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x98\x80"),
            "\"gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x98\x80\"");
}

TEST(JsonString, TurnsBytesThatAreNoUtf8IntoLoneSurrogates) {
  EXPECT_EQ(json_string("\xff"), R"("\udcff")");
  EXPECT_EQ(json_string("\xC3"), R"("\udcc3")") << "cut off";
  EXPECT_EQ(json_string("\xC0\xAF"), R"("\udcc0\udcaf")") << "overlong";
  EXPECT_EQ(json_string("\xED\xA0\x80"), R"("\udced\udca0\udc80")") << "surrogate";
  EXPECT_EQ(json_string("\xF4\x90\x80\x80"), R"("\udcf4\udc90\udc80\udc80")") << "beyond Unicode";
}

TEST(Json, PutsCommasBetweenMembersAndElements) {
  Text<128> out;
  Json json(out);
  json.begin_object()
      .member("a", 1)
      .key("b")
      .begin_array()
      .value("x")
      .value(true)
      .begin_object()
      .end_object()
      .end_array()
      .member("c", "y");
  json.end_object();
  EXPECT_EQ(out.view(), R"({"a":1,"b":["x",true,{}],"c":"y"})");
}

TEST(Errors, HaveTheNamesAndTextsOfTheCLibrary) {
  for (int number = 1; number < 200; ++number) {
    const char* name = strerrorname_np(number);
    EXPECT_STREQ(errno_name(number), name != nullptr ? name : "unknown error") << number;
    const char* text = strerrordesc_np(number);
    EXPECT_STREQ(errno_text(number), text != nullptr ? text : "unknown error") << number;
  }
}

}  // namespace
}  // namespace pario::base
