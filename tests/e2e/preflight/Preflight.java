import java.io.File;
import java.io.IOException;
import java.util.Map;
import java.util.TreeMap;
import java.util.logging.LogManager;
import org.apache.pdfbox.preflight.PreflightDocument;
import org.apache.pdfbox.preflight.ValidationResult;
import org.apache.pdfbox.preflight.exception.SyntaxValidationException;
import org.apache.pdfbox.preflight.parser.PreflightParser;

/**
 * PDF/A-1b by Apache PDFBox's preflight, one JVM for a list of files: starting one takes longer
 * than judging a document. For each file one line "FILE: ok", or one "FILE: CODE DETAILS" for each
 * different fault. Exit status 1 when a file has a fault, 2 when it could not be judged.
 */
public final class Preflight {
    private static ValidationResult judge(String path) throws IOException {
        PreflightParser parser = new PreflightParser(new File(path));
        try {
            parser.parse();
            try (PreflightDocument document = parser.getPreflightDocument()) {
                document.validate();
                return document.getResult();
            }
        } catch (SyntaxValidationException fault) {
            return fault.getResult();
        }
    }

    private static Map<String, String> faultsOf(ValidationResult result) {
        Map<String, String> faults = new TreeMap<>();
        for (ValidationResult.ValidationError fault : result.getErrorsList()) {
            faults.putIfAbsent(fault.getErrorCode(), fault.getDetails());
        }
        if (faults.isEmpty() && !result.isValid()) {
            faults.put("invalid", "no fault named");
        }
        return faults;
    }

    public static void main(String[] paths) {
        int status = paths.length == 0 ? 2 : 0;
        LogManager.getLogManager().reset();
        for (String path : paths) {
            try {
                Map<String, String> faults = faultsOf(judge(path));
                if (faults.isEmpty()) {
                    System.out.println(path + ": ok");
                } else {
                    faults.forEach((code, details) ->
                        System.out.println(path + ": " + code + " " + details));
                    status = Math.max(status, 1);
                }
            } catch (IOException | RuntimeException fault) {
                System.out.println(path + ": unreadable " + fault);
                status = 2;
            }
        }
        System.exit(status);
    }
}
