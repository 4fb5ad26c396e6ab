// Definitions and calls of functions whose arguments are machine words: integers, pointers and
// handles, each in one integer register or one 8-byte stack slot. On x86-64 and aarch64 a
// definition can declare them as words, and pass them on unchanged.
//
//   Word f(PARIO_PARAMETERS_3) { const Word words[] = {PARIO_WORDS_3}; ... }
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace pario::symbols {

using Word = std::uintptr_t;

/// Arguments of a call that fits into registers, and of any other call.
inline constexpr std::size_t kRegisterWords = 6, kMostWords = 14;

/// The length of an array for the arguments of a function, for forward().
constexpr std::size_t word_capacity(std::size_t arguments) {
  return arguments <= kRegisterWords ? kRegisterWords : kMostWords;
}

namespace detail {

template <std::size_t>
using WordAt = Word;

template <std::size_t... I>
Word call_with(void* function, const Word* words, std::index_sequence<I...>) {
  return reinterpret_cast<Word (*)(WordAt<I>...)>(function)(words[I]...);
}

}  // namespace detail

/// Calls a function with `arguments` words, of an array of word_capacity(arguments). Words beyond
/// its parameters are harmless: the caller owns their stack slots, and unused argument registers
/// are scratch.
inline Word forward(void* function, const Word* words, std::size_t arguments) {
  if (arguments <= kRegisterWords)
    return detail::call_with(function, words, std::make_index_sequence<kRegisterWords>());
  return detail::call_with(function, words, std::make_index_sequence<kMostWords>());
}

}  // namespace pario::symbols

#define PARIO_PARAMETERS_0 void
#define PARIO_PARAMETERS_1 Word a0
#define PARIO_PARAMETERS_2 PARIO_PARAMETERS_1, Word a1
#define PARIO_PARAMETERS_3 PARIO_PARAMETERS_2, Word a2
#define PARIO_PARAMETERS_4 PARIO_PARAMETERS_3, Word a3
#define PARIO_PARAMETERS_5 PARIO_PARAMETERS_4, Word a4
#define PARIO_PARAMETERS_6 PARIO_PARAMETERS_5, Word a5
#define PARIO_PARAMETERS_7 PARIO_PARAMETERS_6, Word a6
#define PARIO_PARAMETERS_8 PARIO_PARAMETERS_7, Word a7
#define PARIO_PARAMETERS_9 PARIO_PARAMETERS_8, Word a8
#define PARIO_PARAMETERS_10 PARIO_PARAMETERS_9, Word a9
#define PARIO_PARAMETERS_11 PARIO_PARAMETERS_10, Word a10
#define PARIO_PARAMETERS_12 PARIO_PARAMETERS_11, Word a11
#define PARIO_PARAMETERS_13 PARIO_PARAMETERS_12, Word a12

#define PARIO_WORDS_0
#define PARIO_WORDS_1 a0
#define PARIO_WORDS_2 PARIO_WORDS_1, a1
#define PARIO_WORDS_3 PARIO_WORDS_2, a2
#define PARIO_WORDS_4 PARIO_WORDS_3, a3
#define PARIO_WORDS_5 PARIO_WORDS_4, a4
#define PARIO_WORDS_6 PARIO_WORDS_5, a5
#define PARIO_WORDS_7 PARIO_WORDS_6, a6
#define PARIO_WORDS_8 PARIO_WORDS_7, a7
#define PARIO_WORDS_9 PARIO_WORDS_8, a8
#define PARIO_WORDS_10 PARIO_WORDS_9, a9
#define PARIO_WORDS_11 PARIO_WORDS_10, a10
#define PARIO_WORDS_12 PARIO_WORDS_11, a11
#define PARIO_WORDS_13 PARIO_WORDS_12, a12
