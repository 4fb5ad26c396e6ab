# needs: java
cat > J.java <<'JAVA'
import java.nio.file.*;

public class J {
  public static void main(String[] arguments) throws Exception {
    Files.writeString(Path.of("j.txt"), "java");
    System.out.println(Files.size(Path.of("j.txt")));
  }
}
JAVA
java -XX:TieredStopAtLevel=1 J.java
