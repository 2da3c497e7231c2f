//===- PrecompiledTests.h - What most tests include, parsed once -*- C++ -*-===//
//
// GoogleTest and the standard library take longer to parse than most tests. Tests include what they
// need regardless.
//
//===----------------------------------------------------------------------===//

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>
