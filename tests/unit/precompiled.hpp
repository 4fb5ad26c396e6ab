// Headers that every unit test includes.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>

#include "../../cmake/precompiled.hpp"
