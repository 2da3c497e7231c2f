//===- shared_tensors.cpp - A file of tensors that ranks write -------------===//

#include "shared_tensors.h"

#include "../core/aside_file.h"
#include "../core/checksum.h"
#include "element_types.h"
#include "genrec_rt/error.h"
#include "non_finite.h"

#include <algorithm>
#include <memory>

namespace genrec::rt {

namespace {

constexpr int64_t kDigestBytes = TensorDigest::kBlockBytes;

int64_t blocksUpTo(int64_t bytes) { return (bytes + kDigestBytes - 1) / kDigestBytes; }

/// The bytes at the begin of rank r's share that are of a block which begins in another share.
int64_t headBytes(const SharedTensor &tensor, int32_t rank) {
  int64_t begin = tensor.bounds[rank], end = tensor.bounds[rank + 1];
  return std::min(end, blocksUpTo(begin) * kDigestBytes) - begin;
}

/// The rank in whose share the block of rank r's head begins.
int32_t ownerOfHead(const SharedTensor &tensor, int32_t rank) {
  int64_t begin = tensor.bounds[rank] / kDigestBytes * kDigestBytes;
  return static_cast<int32_t>(std::upper_bound(tensor.bounds.begin(), tensor.bounds.end(), begin) -
                              tensor.bounds.begin() - 1);
}

/// The blocks whose checksums rank r computes.
int64_t blocksOf(const SharedTensor &tensor, int32_t rank) {
  return blocksUpTo(tensor.bounds[rank + 1]) - blocksUpTo(tensor.bounds[rank]);
}

class SharedWriter {
public:
  SharedWriter(Communicator *comm, const std::vector<SharedTensor> &tensors, bool finiteOnly)
      : comm(comm), tensors(tensors), finiteOnly(finiteOnly), rank(comm ? comm->getRank() : 0),
        size(comm ? comm->getSize() : 1) {}

  TensorDigest write(const std::string &path, const std::string &header);

private:
  void open(const std::string &path, const std::string &header);
  std::string exchangeHeads(const SharedTensor &tensor);
  void writeShare(const SharedTensor &tensor, const std::string &rest);
  void collect(TensorDigest &digest);

  Communicator *comm;
  const std::vector<SharedTensor> &tensors;
  bool finiteOnly;
  int32_t rank, size;
  std::unique_ptr<AsideFile> file;
  int64_t begin = 0;          ///< of the next tensor in the file
  std::vector<uint64_t> sums; ///< of this rank's blocks, tensor by tensor
  TensorDigest seen;          ///< where this rank saw a NaN
  std::string buffer;
};

void SharedWriter::open(const std::string &path, const std::string &header) {
  runTogether(comm, [&] {
    if (rank != 0)
      return;
    file = std::make_unique<AsideFile>(path);
    file->write(header.data(), static_cast<int64_t>(header.size()));
  });
  runTogether(comm, [&] {
    if (rank != 0)
      file = std::make_unique<AsideFile>(path, AsideFile::Role::joiner);
  });
}

/// What other ranks have of this rank's last block, for its checksum.
std::string SharedWriter::exchangeHeads(const SharedTensor &tensor) {
  bool hasHeads = false;
  for (int32_t other = 1; other < size; ++other)
    hasHeads |= headBytes(tensor, other) > 0;
  if (!hasHeads)
    return {};
  std::string head, rest;
  std::vector<SendPart> send(size);
  std::vector<ReceivePart> receive(size);
  runTogether(comm, [&] {
    head.resize(static_cast<size_t>(headBytes(tensor, rank)));
    int64_t at = tensor.bounds[rank], bytes = 0;
    if (!head.empty())
      tensor.read(at, at + static_cast<int64_t>(head.size()), head.data());
    for (int32_t other = rank + 1; other < size; ++other)
      bytes += ownerOfHead(tensor, other) == rank ? headBytes(tensor, other) : 0;
    rest.resize(static_cast<size_t>(bytes));
  });
  if (!head.empty())
    send[ownerOfHead(tensor, rank)] = {head.data(), static_cast<int64_t>(head.size())};
  char *to = rest.data();
  for (int32_t other = rank + 1; other < size; ++other)
    if (ownerOfHead(tensor, other) == rank) {
      receive[other] = {to, headBytes(tensor, other)};
      to += receive[other].bytes;
    }
  comm->exchange(send, receive);
  return rest;
}

void SharedWriter::writeShare(const SharedTensor &tensor, const std::string &rest) {
  int64_t rowElements = 1, at = tensor.bounds[rank], end = tensor.bounds[rank + 1];
  for (size_t i = 1; i < tensor.shape.size(); ++i)
    rowElements *= tensor.shape[i];
  if (at < end)
    file->seek(begin + at);
  while (at < end) {
    bool isHead = at % kDigestBytes != 0; // of a block that is another rank's
    int64_t next = std::min(end, (at / kDigestBytes + 1) * kDigestBytes);
    buffer.resize(static_cast<size_t>(next - at));
    tensor.read(at, next, buffer.data());
    if (isStoredFloat(tensor.dtype))
      noteNonFinite(seen, {tensor.name, rowElements, at, bytesOf(tensor.dtype)}, buffer.data(),
                    next - at, finiteOnly);
    file->write(buffer.data(), next - at);
    if (next % kDigestBytes != 0) // the last one
      buffer += rest;
    if (!isHead)
      sums.push_back(checksumOf(buffer.data(), static_cast<int64_t>(buffer.size())));
    at = next;
  }
  begin += tensor.bytes();
}

/// Gives rank 0 the checksums of all.
void SharedWriter::collect(TensorDigest &digest) {
  std::vector<std::vector<uint64_t>> all(size);
  std::vector<SendPart> send(size);
  std::vector<ReceivePart> receive(size);
  runTogether(comm, [&] {
    if (rank != 0)
      return;
    for (int32_t other = 1; other < size; ++other) {
      int64_t count = 0;
      for (const SharedTensor &tensor : tensors)
        count += blocksOf(tensor, other);
      all[other].resize(static_cast<size_t>(count));
      receive[other] = {all[other].data(), count * 8};
    }
  });
  if (rank != 0)
    send[0] = {sums.data(), static_cast<int64_t>(sums.size()) * 8};
  if (size > 1)
    comm->exchange(send, receive);
  runTogether(comm, [&] {
    all[0] = std::move(sums);
    std::vector<size_t> taken(size);
    for (const SharedTensor &tensor : tensors)
      for (int32_t other = 0; rank == 0 && other < size; ++other) {
        std::vector<uint64_t> &blocks = digest.blocks[tensor.name];
        auto from = all[other].begin() + static_cast<std::ptrdiff_t>(taken[other]);
        blocks.insert(blocks.end(), from, from + blocksOf(tensor, other));
        taken[other] += static_cast<size_t>(blocksOf(tensor, other));
      }
  });
  int32_t sawNan = !seen.notFinite.empty();
  std::vector<int32_t> saw(size);
  if (size > 1)
    comm->allGather(&sawNan, saw.data(), sizeof sawNan);
  bool othersSaw = std::any_of(saw.begin(), saw.end(), [](int32_t it) { return it != 0; });
  digest.notFinite = seen.notFinite.empty() && othersSaw ? "a row of another rank" : seen.notFinite;
}

TensorDigest SharedWriter::write(const std::string &path, const std::string &header) {
  TensorDigest digest;
  digest.header = checksumOf(header);
  begin = static_cast<int64_t>(header.size());
  open(path, header);
  for (const SharedTensor &tensor : tensors) {
    std::string rest = exchangeHeads(tensor);
    runTogether(comm, [&] { writeShare(tensor, rest); });
  }
  digest.bytes = begin;
  runTogether(comm, [&] {
    file->flushToDisk();
    if (rank != 0)
      file.reset();
  });
  collect(digest);
  runTogether(comm, [&] {
    if (rank != 0)
      return;
    if (file->size() != digest.bytes)
      throw Error(path + ": the ranks wrote " + std::to_string(digest.bytes) +
                      " bytes, rank 0 sees " + std::to_string(file->size()),
                  "ranks on several machines need a folder that all of them share");
    file->commit();
  });
  return digest;
}

} // namespace

std::vector<int64_t> divideBlocks(int64_t bytes, int32_t ranks) {
  std::vector<int64_t> bounds;
  for (int32_t rank = 0; rank <= ranks; ++rank)
    bounds.push_back(std::min(bytes, blocksUpTo(bytes) * rank / ranks * kDigestBytes));
  return bounds;
}

void addTensors(SafetensorsWriter &writer, const std::vector<SharedTensor> &tensors) {
  for (const SharedTensor &tensor : tensors)
    writer.add(tensor.name, tensor.dtype, tensor.shape,
               [bytes = tensor.bytes(), read = tensor.read](const SafetensorsWriter::Put &put) {
                 std::string block;
                 for (int64_t at = 0; at < bytes; at += kDigestBytes) {
                   int64_t end = std::min(bytes, at + kDigestBytes);
                   block.resize(static_cast<size_t>(end - at));
                   read(at, end, block.data());
                   put(block.data(), end - at);
                 }
               });
}

TensorDigest writeTogether(Communicator *comm, const std::string &path,
                           const SafetensorsWriter &header,
                           const std::vector<SharedTensor> &tensors, bool finiteOnly) {
  std::string text;
  runTogether(comm, [&] { text = header.header(); });
  return SharedWriter(comm, tensors, finiteOnly).write(path, text);
}

} // namespace genrec::rt
