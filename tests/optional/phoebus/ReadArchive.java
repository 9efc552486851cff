import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.List;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.stream.IntStream;
import org.epics.vtype.Alarm;
import org.epics.vtype.Display;
import org.epics.vtype.Time;
import org.epics.vtype.VEnum;
import org.epics.vtype.VNumber;
import org.epics.vtype.VNumberArray;
import org.epics.vtype.VStatistics;
import org.epics.vtype.VString;
import org.epics.vtype.VType;
import org.phoebus.archive.reader.ValueIterator;
import org.phoebus.archive.reader.appliance.ApplianceArchiveReader;

/**
 * Reads an archive by Phoebus's archive reader. Each line of the standard input is a request, with tabs
 * between its parts; each value is a line of the answer, and an empty line ends it.
 *
 * <p>The requests: {@code names GLOB}, {@code raw NAME FROM TO}, and {@code optimized} or {@code mean}
 * (getOptimizedValues with or without the operator of that name), {@code optimized-statistics} or
 * {@code mean-statistics}, with NAME FROM TO COUNT. A line has the value's type, its time in nanoseconds, severity and status of its
 * alarm, the value, its unit, the range of its display and the range without a warning.
 */
class ReadArchive {
    private static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);

    public static void main(String[] arguments) throws Exception {
        Logger.getLogger("").setLevel(Level.OFF);
        var requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            try {
                answer(arguments[0], line.split("\t"));
            } catch (Exception failure) {
                OUT.println("failed\t" + failure);
            }
            OUT.println();
            OUT.flush();
        }
    }

    private static void answer(String url, String[] request) throws Exception {
        String what = request[0];
        var reader = new ApplianceArchiveReader(url, what.endsWith("statistics"), what.startsWith("optimized"));
        if (what.equals("names")) {
            reader.getNamesByPattern(request[1]).forEach(OUT::println);
            return;
        }
        Instant from = Instant.parse(request[2]);
        Instant to = Instant.parse(request[3]);
        ValueIterator values = what.equals("raw")
            ? reader.getRawValues(request[1], from, to)
            : reader.getOptimizedValues(request[1], from, to, Integer.parseInt(request[4]));
        try (values) {
            while (values.hasNext()) {
                OUT.println(line(values.next()));
            }
        }
    }

    private static String line(VType value) {
        Instant time = Time.timeOf(value).getTimestamp();
        Alarm alarm = Alarm.alarmOf(value);
        Display display = Display.displayOf(value);
        return String.join("\t",
            VType.typeOf(value).getSimpleName(),
            String.format("%d%09d", time.getEpochSecond(), time.getNano()),
            alarm.getSeverity().toString(),
            alarm.getName(),
            content(value),
            display.getUnit(),
            display.getDisplayRange().toString(),
            display.getWarningRange().toString());
    }

    /** As JSON, but for NaN and infinities. */
    private static String content(VType value) {
        if (value instanceof VNumber number) {
            return number.getValue().toString();
        }
        if (value instanceof VEnum choice) {
            return List.of(choice.getIndex(), choice.getValue()).toString();
        }
        if (value instanceof VString text) {
            return '"' + text.getValue().replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t").replace("\"", "\\\"") + '"';
        }
        if (value instanceof VNumberArray numbers) {
            var data = numbers.getData();
            return IntStream.range(0, data.size()).mapToObj(data::getDouble).toList().toString();
        }
        if (value instanceof VStatistics bin) {
            return List.of(bin.getAverage(), bin.getStdDev(), bin.getMin(), bin.getMax(), bin.getNSamples()).toString();
        }
        throw new IllegalArgumentException(value.toString());
    }
}
