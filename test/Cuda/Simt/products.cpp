//===- products.cpp - Matrix products of a warpgroup, under way -----------===//
//
// A warp's reads are checked and noted when it starts a product; what its lanes get is computed
// when they wait, or at once, as the seed has it.
//
//===----------------------------------------------------------------------===//

#include "machine.h"

#include <algorithm>
#include <cstring>

namespace simt {

namespace {

constexpr int kDepth = 16; ///< that one product sums over

Thread &current() { return *machine.thread; }

double fromBf16(uint32_t bits) {
  bits <<= 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return static_cast<double>(value);
}

/// Where element (x, k) of a described matrix is: x counts rows of the left or columns of the right
/// operand.
uint32_t addressOf(uint64_t descriptor, bool across, int x, int k) {
  const auto start = static_cast<uint32_t>(descriptor & 0x3FFF) << 4;
  const auto leading = static_cast<uint32_t>(descriptor >> 16 & 0x3FFF) << 4;
  const auto stride = static_cast<uint32_t>(descriptor >> 32 & 0x3FFF) << 4;
  const auto ux = static_cast<uint32_t>(x), uk = static_cast<uint32_t>(k);
  return across ? start + ux / 64 * leading + ux % 64 * 2 + uk / 8 * stride + uk % 8 * 128
                : start + ux / 8 * stride + ux % 8 * 128 + uk * 2;
}
const unsigned char *elementAt(uint64_t descriptor, bool across, int x, int k) {
  return swizzled(addressOf(descriptor, across, x, k));
}

/// Element x of a described matrix, all of its depth.
void takeDescribed(double (&to)[kDepth], uint64_t descriptor, bool across, int x) {
  // As swizzled() has it, which asks for the block's memory each time.
  const unsigned char *base = sharedBase();
  for (int k = 0; k < kDepth; ++k) {
    const uint32_t address = addressOf(descriptor, across, x, k);
    uint16_t bits;
    std::memcpy(&bits, base + (address ^ (address >> 7 & 7) << 4), sizeof(bits));
    to[k] = fromBf16(bits);
  }
}

/// Notes what the warp reads of a matrix: [first, first + count) by the depth. 16 bytes lie
/// together: along the depth, or along x.
void readOperand(const Accessor &who, uint64_t descriptor, bool across, int first, int count) {
  if (across)
    for (int k = 0; k < kDepth; ++k)
      for (int x = first; x < first + count; x += 8)
        access(who, elementAt(descriptor, across, x, k), 16, false);
  else
    for (int x = first; x < first + count; ++x)
      for (int k = 0; k < kDepth; k += 8)
        access(who, elementAt(descriptor, across, x, k), 16, false);
}

int warpInGroup(const Thread &thread) { return thread.number / kWarp % 4; }

void complete(const Thread &thread, const Product &product) {
  const int lane = thread.number % kWarp;
  double rows[2][kDepth];
  for (int h = 0; h < 2; ++h)
    if (product.leftShared)
      takeDescribed(rows[h], product.left, product.leftColumns,
                    16 * warpInGroup(thread) + lane / 4 + 8 * h);
    else
      std::copy_n(product.registers[h], kDepth, rows[h]);
  for (int n = 0; n < product.columns / 8; ++n)
    for (int x = 0; x < 2; ++x) {
      double right[kDepth];
      takeDescribed(right, product.right, product.rightColumns, 8 * n + lane % 4 * 2 + x);
      for (int h = 0; h < 2; ++h) {
        double sum = product.add ? static_cast<double>(product.d[n][2 * h + x]) : 0;
        for (int k = 0; k < kDepth; ++k)
          sum += rows[h][k] * right[k];
        product.d[n][2 * h + x] = static_cast<float>(sum);
      }
    }
}

void start(Product product, const Place &place) {
  Block &block = *machine.block;
  Thread &thread = current();
  if (!thread.productsFenced)
    fail("wgmma at " + placeText(place) + " by " + self() +
         " without a wgmma.fence since the last wait");
  if (product.right >> 62 != 1 || (product.leftShared && product.left >> 62 != 1))
    fail("wgmma at " + placeText(place) + ": a descriptor without the 128-byte swizzle");
  product.clock = ++thread.productClock;
  if (thread.number % kWarp == 0) { // for its warp
    Handed knows = thread.knows;
    knows.known.here.learn(static_cast<size_t>(thread.number), thread.clock);
    Accessor who{knows.known, &knows.fenced, block.productActor(thread), product.clock};
    if (product.leftShared)
      readOperand(who, product.left, product.leftColumns, 16 * warpInGroup(thread), 16);
    readOperand(who, product.right, product.rightColumns, 0, product.columns);
  }
  Completion when = completionOf(machine.options);
  if (when == Completion::atOnce) {
    complete(thread, product);
    product.d = nullptr;
  }
  thread.products.items.push_back(product);
}

} // namespace

void addProduct(float (&d)[4], const MmaOperands *const (&all)[32]) {
  const int lane = laneIndex();
  for (int i = 0; i < 4; ++i) {
    const int row = lane / 4 + 8 * (i / 2), column = lane % 4 * 2 + i % 2;
    double sum = static_cast<double>(d[i]);
    for (int k = 0; k < kDepth; ++k) {
      const uint32_t left = all[row % 8 * 4 + k % 8 / 2]->a[row / 8 + 2 * (k / 8)];
      const uint32_t right = all[column * 4 + k % 8 / 2]->b[k / 8];
      sum += fromBf16(k % 2 ? left >> 16 : left & 0xFFFF) *
             fromBf16(k % 2 ? right >> 16 : right & 0xFFFF);
    }
    d[i] = static_cast<float>(sum);
  }
}

void takeMatrices(uint32_t (&r)[4], const uint16_t (*const (&all)[32])[8], bool transposed) {
  const int g = laneIndex() / 4, q = laneIndex() % 4;
  for (int m = 0; m < 4; ++m) {
    auto at = [&](int row, int column) { return uint32_t((*all[8 * m + row])[column]); };
    r[m] =
        transposed ? at(2 * q, g) | at(2 * q + 1, g) << 16 : at(g, 2 * q) | at(g, 2 * q + 1) << 16;
  }
}

void fenceProducts() {
  Inside inside;
  current().productsFenced = true;
}

void startProduct(float (*d)[4], int columns, uint64_t left, bool leftColumns, uint64_t right,
                  bool rightColumns, bool add, Place place) {
  Inside inside;
  // Instructions of a whole warp.
  warpExchange(WarpOp::meet, ~0u, 0, 0, place);
  start({d, columns, add, true, leftColumns, rightColumns, left, right, {}, 0}, place);
}

void startProduct(float (*d)[4], int columns, const uint32_t (&left)[4], uint64_t right,
                  bool rightColumns, bool add, Place place) {
  Inside inside;
  Thread &thread = current();
  Product product{d, columns, add, false, false, rightColumns, 0, right, {}, 0};
  // Lanes show each other their fragments: all are there after the first meeting, until the second.
  thread.waitsFor = left;
  warpExchange(WarpOp::meet, ~0u, 0, 0, place);
  const Thread *lanes = machine.block->threads.data() + thread.number / kWarp * kWarp;
  for (int h = 0; h < 2; ++h)
    for (int k = 0; k < kDepth; ++k) {
      const auto *a =
          static_cast<const uint32_t *>(lanes[thread.number % kWarp / 4 * 4 + k % 8 / 2].waitsFor);
      const uint32_t pair = a[h + 2 * (k / 8)];
      product.registers[h][k] = fromBf16(k % 2 ? pair >> 16 : pair & 0xFFFF);
    }
  warpExchange(WarpOp::meet, ~0u, 0, 0, place);
  start(product, place);
}

void commitProducts() {
  Inside inside;
  current().products.commit();
}

void waitForProducts(size_t left) {
  Inside inside;
  Thread &thread = current();
  thread.productsFenced = false;
  thread.products.completeUntil(left, [&](const Product &product) {
    if (product.d)
      complete(thread, product);
    thread.knows.known.here.learn(machine.block->productActor(thread), product.clock);
  });
}

} // namespace simt
