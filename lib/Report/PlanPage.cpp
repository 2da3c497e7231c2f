//===- PlanPage.cpp - a plan as an HTML page ------------------------------===//

#include "PlanPicture.h"

#include "genrec/Report/Explain.h"
#include "genrec/Report/PlanJson.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace genrec;
using llvm::StringRef;
namespace json = llvm::json;

/// The style of the page. Nothing is wider than the window: long text wraps, and tables with many
/// numbers scroll. The origin of an op may be pages long: two lines are shown, a click shows the
/// rest.
static constexpr StringRef kStyle = R"css(
body { font: 14px/1.4 sans-serif; margin: 1.5em; color: #222; overflow-wrap: anywhere; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin-top: 1.6em; }
summary { font-size: 1.05em; font-weight: bold; margin: 1em 0 0.4em; cursor: pointer; }
summary .count { color: #666; font-weight: normal; }
table { border-collapse: collapse; max-width: 100%; } th { position: sticky; top: 2.6em; background: #fff; cursor: pointer; }
td, th { padding: 2px 10px; text-align: left; vertical-align: top; border-bottom: 1px solid #eee; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; } td.n { white-space: nowrap; }
.table th, .table td { overflow-wrap: normal; }
td.op, th.op { min-width: 22em; width: 45%; } .table td.op { overflow-wrap: anywhere; }
.from, .lines { color: #666; } .from { font-size: 0.9em; cursor: pointer; overflow: hidden;
        display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; }
.from.whole { display: block; }
.picture { overflow: auto; max-height: 40em; border: 1px solid #ddd; padding: 4px; }
#bar { position: sticky; top: 0; background: #fff; padding: 6px 0; z-index: 1; }
#search { width: 24em; max-width: 100%; box-sizing: border-box; font-size: 1em; padding: 3px; }
.hidden { display: none; } .node.dim { opacity: 0.15; }
@media (max-width: 1100px) { .table { overflow-x: auto; } th { position: static; } td, th { padding: 2px 6px; } }
)css";

/// The search shows rows and boxes that contain every word, and opens the sections they are in. A
/// click on a table's head sorts it; a click on an op's origin shows all of it.
static constexpr StringRef kScript = R"js(
const search = document.getElementById('search');
search.addEventListener('input', () => {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const has = (text) => words.every((word) => text.toLowerCase().includes(word));
  for (const row of document.querySelectorAll('tbody tr')) row.classList.toggle('hidden', !has(row.textContent));
  for (const node of document.querySelectorAll('.node')) node.classList.toggle('dim', !has(node.textContent));
  if (words.length > 0)
    for (const part of document.querySelectorAll('details')) part.open = part.querySelector('tbody tr:not(.hidden)') !== null;
});
for (const head of document.querySelectorAll('th')) head.addEventListener('click', () => {
  const body = head.closest('table').tBodies[0], column = head.cellIndex, isNumber = head.classList.contains('n');
  const value = (row) => { const text = row.cells[column].textContent; return isNumber ? -parseFloat(text) || 0 : text; };
  [...body.rows].sort((a, b) => value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0).forEach((row) => body.append(row));
});
for (const from of document.querySelectorAll('.from')) from.addEventListener('click', () => from.classList.toggle('whole'));
)js";

/// Tables with more rows are collapsed.
static constexpr size_t kMostRowsShown = 60;

namespace {
struct Column {
  StringRef title, key;
  double scale = 0; ///< factor for a number; 0: text
  StringRef format = "";
  StringRef from = ""; ///< key of a text that is shown, shortened, below the value
};

class PlanPage {
public:
  PlanPage(const json::Object &plan, llvm::raw_ostream &os) : plan(plan), os(os) {}
  void print();

private:
  void origin(StringRef from);
  void cell(const json::Object &row, const Column &column);
  void table(const std::vector<const json::Object *> &rows, llvm::ArrayRef<Column> columns);
  void beginPart(StringRef title, size_t rows);
  void part(StringRef title, const std::vector<const json::Object *> &rows,
            llvm::ArrayRef<Column> columns);
  void list(const json::Object &object, StringRef key, StringRef title);
  void program(const json::Object &program);
  void world(const json::Object &world);

  const json::Object &plan;
  llvm::raw_ostream &os;
};
} // namespace

/// Whether any row has a value in `column`.
static bool isUsed(const std::vector<const json::Object *> &rows, const Column &column) {
  return llvm::any_of(rows, [&](const json::Object *row) {
    return column.scale != 0 ? row->getNumber(column.key).value_or(0) != 0
                             : !row->getString(column.key).value_or("").empty();
  });
}

/// "add, mul; of score (model.py:12)": names and lines of the ops that `from` lists.
void PlanPage::origin(StringRef from) {
  auto [made, lines] = from.ends_with(")") ? from.rsplit('(') : std::pair(from, StringRef());
  if (!lines.empty())
    os << " <span class=\"lines\">" << escapeHtml(lines.drop_back()) << "</span>";
  if (made = made.rtrim(); !made.empty())
    os << "<div class=\"from\">" << escapeHtml(made) << "</div>";
}

void PlanPage::cell(const json::Object &row, const Column &column) {
  if (column.scale != 0) {
    os << "<td class=\"n\">";
    if (std::optional<double> number = row.getNumber(column.key))
      os << llvm::format(column.format.data(), *number * column.scale);
  } else {
    os << (column.from.empty() ? "<td>" : "<td class=\"op\">")
       << escapeHtml(row.getString(column.key).value_or(""));
    origin(column.from.empty() ? "" : row.getString(column.from).value_or(""));
  }
  os << "</td>";
}

void PlanPage::table(const std::vector<const json::Object *> &rows,
                     llvm::ArrayRef<Column> columns) {
  llvm::SmallVector<Column> used =
      llvm::filter_to_vector(columns, [&](const Column &column) { return isUsed(rows, column); });
  os << "<div class=\"table\"><table><thead><tr>";
  for (const Column &column : used)
    os << (column.scale != 0      ? "<th class=\"n\">"
           : !column.from.empty() ? "<th class=\"op\">"
                                  : "<th>")
       << escapeHtml(column.title) << "</th>";
  os << "</tr></thead><tbody>\n";
  for (const json::Object *row : rows) {
    os << "<tr>";
    for (const Column &column : used)
      cell(*row, column);
    os << "</tr>\n";
  }
  os << "</tbody></table></div>\n";
}

void PlanPage::beginPart(StringRef title, size_t rows) {
  os << (rows > kMostRowsShown ? "<details>" : "<details open>") << "<summary>" << title
     << " <span class=\"count\">" << rows << "</span></summary>\n";
}

void PlanPage::part(StringRef title, const std::vector<const json::Object *> &rows,
                    llvm::ArrayRef<Column> columns) {
  if (rows.empty())
    return;
  beginPart(title, rows.size());
  table(rows, columns);
  os << "</details>\n";
}

void PlanPage::list(const json::Object &object, StringRef key, StringRef title) {
  const json::Array *lines = object.getArray(key);
  if (!lines || lines->empty())
    return;
  beginPart(title, lines->size());
  os << "<table><tbody>\n";
  for (const json::Value &line : *lines)
    os << "<tr><td>" << escapeHtml(line.getAsString().value_or("")) << "</td></tr>\n";
  os << "</tbody></table></details>\n";
}

void PlanPage::program(const json::Object &program) {
  StringRef name = program.getString("name").value_or("");
  os << "<h2>program " << escapeHtml(name) << "</h2>\n<p>"
     << program.getInteger("row_kernels").value_or(0) << " row kernels, "
     << program.getInteger("launches").value_or(0) << " launches";
  if (std::optional<double> time = program.getNumber("predicted_milliseconds"))
    os << llvm::format(", at least %.3f ms per step", *time);
  os << "</p>\n";
  std::vector<const json::Object *> ops = getObjects(program, "ops");
  llvm::stable_sort(ops, [](const json::Object *a, const json::Object *b) {
    auto weight = [](const json::Object *op) {
      return op->getNumber("predicted_milliseconds")
          .value_or(op->getNumber("bytes").value_or(0) +
                    op->getNumber("gathered_bytes").value_or(0));
    };
    return weight(a) > weight(b);
  });
  table(ops, {{"op", "name", 0, "", "from"},
              {"stage", "stage"},
              {"over", "domain"},
              {"rows", "rows", 1, "%.0f"},
              {"at least ms", "predicted_milliseconds", 1, "%.4f"},
              {"by", "bound"},
              {"MB", "bytes", 1e-6, "%.3f"},
              {"MB picked", "gathered_bytes", 1e-6, "%.3f"},
              {"MFLOP", "flops", 1e-6, "%.3f"},
              {"MFLOP in products", "product_flops", 1e-6, "%.3f"},
              {"B/row", "bytes_per_row", 1, "%.0f"},
              {"FLOP/row", "flops_per_row", 1, "%.0f"}});
  list(program, "decisions", "decisions");
  part("memory", getObjects(program, "memory"),
       {{"part", "part"}, {"MB", "bytes", 1e-6, "%.1f"}, {"note", "note"}});
  part("buffers", getObjects(program, "buffers"),
       {{"buffer", "name"},
        {"MB", "bytes", 1e-6, "%.3f"},
        {"first op", "first", 1, "%.0f"},
        {"last op", "last", 1, "%.0f"}});
  if (const json::Object *graph = program.getObject("graph")) {
    os << "<h3>graph after</h3>\n<div class=\"picture\">";
    drawGraph(*graph, os);
    os << "</div>\n";
  }
}

/// What ranks exchange and hold (ExplainWorld.cpp).
void PlanPage::world(const json::Object &world) {
  os << "<h2>on " << world.getInteger("ranks").value_or(0) << " ranks</h2>\n<p>"
     << world.getInteger("batch").value_or(0) << " root rows in "
     << world.getInteger("portions").value_or(0) << " portions, "
     << world.getInteger("rounds").value_or(0) << " rounds";
  if (const json::Object *time = world.getObject("time"))
    os << "; runs out first: " << escapeHtml(time->getString("first").value_or("")) << " ("
       << escapeHtml(time->getString("why").value_or("")) << ")";
  os << "</p>\n";
  part("exchanges", getObjects(world, "exchanges"),
       {{"comes to a rank", "exchange"},
        {"rows", "rows", 1, "%.0f"},
        {"most rows", "most_rows", 1, "%.0f"},
        {"KB", "bytes", 1e-3, "%.1f"},
        {"most KB", "most_bytes", 1e-3, "%.1f"},
        {"ms", "milliseconds", 1, "%.3f"}});
  part("tables among ranks", getObjects(world, "tables"),
       {{"table", "name"},
        {"ids", "ids", 1, "%.0f"},
        {"most owned", "most_owned", 1, "%.0f"},
        {"looked up", "looked_up", 1, "%.0f"},
        {"asked", "asked", 1, "%.0f"},
        {"served", "served", 1, "%.0f"},
        {"found", "found", 1, "%.0f"},
        {"KB sharded", "sharded_bytes", 1e-3, "%.1f"},
        {"KB replicated", "replicated_bytes", 1e-3, "%.1f"},
        {"cheaper", "cheaper"},
        {"why", "why"},
        {"ids from", "ids_from"}});
  part("memory of a rank", getObjects(world, "memory"),
       {{"part", "part"}, {"MB", "bytes", 1e-6, "%.1f"}, {"note", "note"}});
}

void PlanPage::print() {
  std::string model = escapeHtml(plan.getString("model").value_or("model"));
  os << "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
        "<meta name=\"viewport\" content=\"width=device-width\"><title>"
     << model << "</title><style>" << kStyle << "</style></head><body>\n<h1>" << model << "</h1>\n";
  os << "<div id=\"bar\"><input id=\"search\" type=\"search\" placeholder=\"search kernels, ops, "
        "columns, lines\"></div>\n";
  os << "<h2>domains</h2>\n<div class=\"picture\">";
  drawDomains(plan, os);
  os << "</div>\n";
  list(plan, "decisions", "decisions");
  part("tables", getObjects(plan, "tables"),
       {{"table", "name"},
        {"dim", "dim", 1, "%.0f"},
        {"optimizer", "optimizer"},
        {"bytes per row", "bytes_per_row", 1, "%.0f"},
        {"in", "in"},
        {"rules", "rules"},
        {"where", "where"}});
  part("columns", getObjects(plan, "columns"),
       {{"column", "column"}, {"of", "domain"}, {"feeds table", "table"}});
  if (const json::Object *graphs = plan.getObject("graphs_before"))
    for (const auto &[name, graph] : *graphs) {
      os << "<h2>graph before (" << escapeHtml(name) << ")</h2>\n<div class=\"picture\">";
      if (const json::Object *object = graph.getAsObject())
        drawGraph(*object, os);
      os << "</div>\n";
    }
  for (const json::Object *entry : getObjects(plan, "programs"))
    program(*entry);
  if (const json::Object *ranks = plan.getObject("world"))
    world(*ranks);
  os << "<script>" << kScript << "</script>\n</body></html>\n";
}

void genrec::printPlanAsHtml(const json::Object &plan, llvm::raw_ostream &os) {
  PlanPage(plan, os).print();
}
